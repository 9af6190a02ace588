/** What an entry pulls in: bundled for a browser, and loaded by Node. */
import { execFile } from "node:child_process"
import { isBuiltin } from "node:module"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { build } from "vite"

export interface BrowserGraph {
  /** Every module of the graph. */
  readonly modules: ReadonlyArray<string>
  /** Node's own modules that something in the graph asks for, with who asks. */
  readonly builtins: ReadonlyArray<string>
  /** Specifiers that nothing answers. */
  readonly unresolved: ReadonlyArray<string>
}

const isNodeModule = (specifier: string): boolean => specifier.startsWith("node:") || isBuiltin(specifier)

/** Bundles `specifier` with the conditions of a browser and tells what the module graph holds. */
export const browserGraph = async (specifier: string): Promise<BrowserGraph> => {
  const modules: Array<string> = []
  const builtins: Array<string> = []
  const unresolved: Array<string> = []
  const entry = "\0entry"
  await build({
    configFile: false,
    envFile: false,
    publicDir: false,
    logLevel: "silent",
    root: fileURLToPath(new URL("..", import.meta.url)),
    build: {
      write: false,
      minify: false,
      target: "es2023",
      lib: { entry: "entry", formats: ["es"], fileName: "bundle" }
    },
    plugins: [
      {
        name: "graph",
        enforce: "pre",
        async resolveId(source, importer, options) {
          if (importer === undefined) return entry
          if (isNodeModule(source)) {
            builtins.push(`${source} from ${importer}`)
            return { id: source, external: true }
          }
          const from = importer === entry ? fileURLToPath(import.meta.url) : importer
          const found = await this.resolve(source, from, { ...options, skipSelf: true })
          if (found !== null) return found
          unresolved.push(`${source} from ${importer}`)
          return { id: source, external: true }
        },
        load: (id) => (id === entry ? `export * from ${JSON.stringify(specifier)}` : undefined),
        moduleParsed: ({ id }) => void modules.push(id)
      }
    ]
  })
  return { modules, builtins, unresolved }
}

const program = `
import { registerHooks } from "node:module"
const urls = []
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context)
    urls.push(found.url)
    return found
  }
})
await import(process.argv[1])
process.stdout.write(JSON.stringify(urls))
`

/** The URLs of all modules that a fresh Node loads for `import(specifier)`. */
export const loadedBy = async (specifier: string): Promise<ReadonlyArray<string>> => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--no-warnings", "--input-type=module", "--eval", program, specifier],
    { cwd: fileURLToPath(new URL("..", import.meta.url)), maxBuffer: 64 * 1024 * 1024, timeout: 60_000 }
  )
  const urls: unknown = JSON.parse(stdout)
  return Array.isArray(urls) ? urls.map(String) : []
}
