/** The package.json files of the workspace, as far as the checks read them. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./Sources.ts"

export interface Manifest {
  readonly folder: string
  readonly name: string
  readonly private: boolean
  readonly description: string | undefined
  readonly license: string | undefined
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, unknown>>
  readonly imports: Readonly<Record<string, unknown>>
  readonly publishConfig: Readonly<Record<string, unknown>>
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const record = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})

const versions = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(record(value)).map(([name, version]) => [name, String(version)]))

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const readManifest = (folder: string): Manifest => {
  const json = record(JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")))
  return {
    folder,
    name: text(json["name"]) ?? "",
    private: json["private"] === true,
    description: text(json["description"]),
    license: text(json["license"]),
    dependencies: versions(json["dependencies"]),
    devDependencies: versions(json["devDependencies"]),
    peerDependencies: versions(json["peerDependencies"]),
    exports: record(json["exports"]),
    imports: record(json["imports"]),
    publishConfig: record(json["publishConfig"])
  }
}

const foldersOf = (top: string): ReadonlyArray<string> =>
  readdirSync(join(root, top), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `${top}/${entry.name}`)

export const manifests: ReadonlyArray<Manifest> = [
  ...foldersOf("packages"),
  ...foldersOf("apps"),
  "bench",
  "test/e2e"
].map(readManifest)

export const rootManifest: Manifest = readManifest(".")

/** The versions of the catalog in pnpm-workspace.yaml. */
export const catalog: Readonly<Record<string, string>> = Object.fromEntries(
  (readFileSync(join(root, "pnpm-workspace.yaml"), "utf8").split(/^catalog:\n/m)[1] ?? "")
    .split("\n")
    .flatMap((line) => {
      const [, name, version] = /^ {2}"?([^":]+)"?: "?([^"]+)"?$/.exec(line) ?? []
      return name === undefined || version === undefined ? [] : [[name, version]]
    })
)
