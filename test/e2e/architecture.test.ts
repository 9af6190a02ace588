import { assert, describe, it } from "@effect/vitest"
import { isBuiltin } from "node:module"
import { browserGraph, loadedBy } from "./architecture/Graphs.ts"
import { catalog, manifests, rootManifest } from "./architecture/Packages.ts"
import {
  type Area,
  areas,
  edges,
  entryModules,
  exceptions,
  exportMaps,
  forbiddenGlobals,
  heavyPackages,
  loaders,
  holders,
  meaninglessNames,
  selfContained
} from "./architecture/Rules.ts"
import { packageOf, parseSource, readSources, resolveRelative, type Source } from "./architecture/Sources.ts"

const sources = readSources()
const shipped = sources.filter((source) => /^(?:packages|apps)\/[^/]+\/src\//.test(source.path))
const paths = new Set(sources.map((source) => source.path))

const areaOf = (path: string): Area | undefined => areas.find((area) => path.startsWith(`${area.folder}/`))
const manifestOf = (area: Area | undefined) => manifests.find((manifest) => manifest.name === area?.name)
const isNode = (specifier: string): boolean => specifier.startsWith("node:") || isBuiltin(specifier)
const none = (faults: ReadonlyArray<string>): void => assert.deepStrictEqual([...new Set(faults)], [])

const bareImports = (source: Source) =>
  source.imports.flatMap((one) =>
    one.specifier === undefined || one.specifier.startsWith(".") || one.specifier.startsWith("#") ? [] : [one.specifier]
  )

/** The modules of the workspace that a module loads, types left out. */
const valueTargets = (source: Source): ReadonlyArray<string> =>
  source.imports.flatMap((one) => {
    if (one.specifier === undefined || one.typeOnly || one.dynamic) return []
    const target = resolveRelative(source, one.specifier)
    return target !== undefined && paths.has(target) ? [target] : []
  })

/** One circle in the graph, as a list of nodes, or undefined. */
const circleIn = (graph: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyArray<string> | undefined => {
  const state = new Map<string, "open" | "done">()
  const trail: Array<string> = []
  const walk = (node: string): ReadonlyArray<string> | undefined => {
    if (state.get(node) === "done") return undefined
    if (state.get(node) === "open") return [...trail.slice(trail.indexOf(node)), node]
    state.set(node, "open")
    trail.push(node)
    for (const next of graph.get(node) ?? []) {
      const circle = walk(next)
      if (circle !== undefined) return circle
    }
    trail.pop()
    state.set(node, "done")
    return undefined
  }
  for (const node of graph.keys()) {
    const circle = walk(node)
    if (circle !== undefined) return circle
  }
  return undefined
}

describe("who may import whom", () => {
  it("every source belongs to an area of the map", () => {
    none(sources.filter((source) => areaOf(source.path) === undefined).map((source) => source.path))
  })

  it("workspace packages are imported along the arrows of the map only: the client knows nothing of the host [RUN-575]", () => {
    none(
      sources.flatMap((source) => {
        const area = areaOf(source.path)
        return bareImports(source)
          .filter((specifier) => specifier.startsWith("@tackroom/"))
          .filter(
            (specifier) =>
              packageOf(specifier) !== area?.name &&
              area?.imports.some((allowed) => allowed === specifier || allowed === packageOf(specifier)) !== true
          )
          .map((specifier) => `${source.path} imports ${specifier}`)
      })
    )
  })

  it("a relative import stays in its area; a test may reach a suite of an area that it may import", () => {
    none(
      sources.flatMap((source) => {
        const area = areaOf(source.path)
        return source.imports.flatMap(({ specifier }) => {
          const target = specifier === undefined ? undefined : resolveRelative(source, specifier)
          if (target === undefined || area === undefined || target.startsWith(`${area.folder}/`)) return []
          const setup = source.path.startsWith("test/e2e/") && target.startsWith("test/setup/")
          const suite = !shipped.includes(source) && area.imports.includes(areaOf(target)?.name ?? "")
          return setup || suite ? [] : [`${source.path} reaches ${target}`]
        })
      })
    )
  })

  it("what is shipped imports declared dependencies only; tests may also use the workspace's tools", () => {
    none(
      sources.flatMap((source) => {
        const area = areaOf(source.path)
        const manifest = manifestOf(area)
        const declared = new Set([
          ...Object.keys(manifest?.dependencies ?? {}),
          ...Object.keys(manifest?.peerDependencies ?? {}),
          ...(shipped.includes(source)
            ? []
            : [...Object.keys(manifest?.devDependencies ?? {}), ...Object.keys(rootManifest.devDependencies)])
        ])
        return bareImports(source)
          .filter((specifier) => !isNode(specifier) && packageOf(specifier) !== area?.name)
          .filter((specifier) => !declared.has(packageOf(specifier)))
          .filter((specifier) => !(area?.name === undefined && specifier.startsWith("@tackroom/")))
          .map((specifier) => `${source.path} imports ${specifier}`)
      })
    )
  })

  it("a module that is chosen at run time is named by a literal", () => {
    none(
      shipped
        .filter((source) => !loaders.includes(source.path))
        .filter((source) => source.imports.some((one) => one.specifier === undefined))
        .map((source) => `${source.path} imports a computed module`)
    )
  })

  it("packages with one owner are imported by their owner's folders alone", () => {
    none(
      shipped.flatMap((source) =>
        source.imports
          .filter((one) => !one.typeOnly)
          .flatMap(({ specifier }) => {
            const folders = specifier === undefined ? undefined : holders[packageOf(specifier)]
            return folders === undefined || folders.some((folder) => source.path.startsWith(folder))
              ? []
              : [`${source.path} imports ${specifier}`]
          })
      )
    )
  })

  it("the process part of the sdk needs effect, Node and the pure rules of lines alone", () => {
    none(
      Object.entries(selfContained).flatMap(([folder, others]) =>
        shipped
          .filter((source) => source.path.startsWith(`${folder}/`))
          .flatMap((source) =>
            source.imports.flatMap(({ specifier = "" }) => {
              const target = resolveRelative(source, specifier)
              const inside =
                target === undefined
                  ? packageOf(specifier) === "effect" || isNode(specifier) || others.includes(specifier)
                  : target.startsWith(`${folder}/`)
              return inside ? [] : [`${source.path} imports ${specifier}`]
            })
          )
      )
    )
  })

  it("what is internal is imported from beside its folder alone", () => {
    none(
      sources.flatMap((source) =>
        source.imports.flatMap(({ specifier }) => {
          const target = specifier === undefined ? undefined : (resolveRelative(source, specifier) ?? specifier)
          const owner = target === undefined ? undefined : /^(.*?)\/internal\//.exec(target)?.[1]
          if (owner === undefined) return []
          const test = owner.replace(/\/src(?=\/|$)/, "/test")
          const near = source.path.startsWith(`${owner}/`) || source.path.startsWith(`${test}/`)
          return near ? [] : [`${source.path} imports ${specifier}`]
        })
      )
    )
  })

  it("harnesses stand alone, and the runtime knows none of them [RT-006]", () => {
    const harness = /^packages\/sdk\/src\/harness\/([^/]+)\//
    none(
      shipped.flatMap((source) =>
        source.imports.flatMap(({ specifier }) => {
          const target = specifier === undefined ? undefined : resolveRelative(source, specifier)
          const theirs = target === undefined ? undefined : harness.exec(target)?.[1]
          if (theirs === undefined || theirs === "shared") return []
          const ours = harness.exec(source.path)?.[1]
          const apart = ours !== undefined && ours !== theirs
          const core = /^packages\/sdk\/src\/(?:runtime|store|index\.ts|effect\.ts)/.test(source.path)
          return apart || core ? [`${source.path} imports ${specifier}`] : []
        })
      )
    )
  })

  it("modules form no circle", () => {
    const graph = new Map(shipped.map((source) => [source.path, new Set(valueTargets(source))]))
    assert.isUndefined(circleIn(graph))
  })

  it("the folders of a package form no circle", () => {
    const folder = (path: string): string => path.split("/").slice(0, 4).join("/")
    const graph = new Map<string, Set<string>>()
    for (const source of shipped) {
      if (source.path.split("/").length < 5) continue
      const from = graph.get(folder(source.path)) ?? new Set()
      graph.set(folder(source.path), from)
      for (const target of valueTargets(source)) {
        if (target.split("/").length >= 5 && folder(target) !== folder(source.path)) from.add(folder(target))
      }
    }
    assert.isUndefined(circleIn(graph))
  })
})

describe("names", () => {
  it("no file and no folder has a name that says nothing", () => {
    const words = new Set(meaninglessNames)
    none(
      sources
        .map((source) => source.path)
        .filter((path) => path.split("/").some((part) => words.has((part.split(".")[0] ?? "").toLowerCase())))
    )
  })

  it("a module is a PascalCase noun in lower-case folders, but for entries", () => {
    none(
      shipped
        .map((source) => source.path)
        .filter((path) => !entryModules.some((entry) => entry.test(path)))
        .filter((path) => !/^(?:[a-z0-9-]+\/)+[A-Z][A-Za-z0-9]*(?:\.suite|\.gen)?\.tsx?$/.test(path))
    )
  })
})

describe("globals", () => {
  const uses = shipped
    .filter((source) => !edges.some((edge) => edge.test(source.path)))
    .flatMap((source) =>
      source.globals
        .filter((global) => forbiddenGlobals.some((forbidden) => forbidden.test(global)))
        .map((global) => `${source.path} uses ${global}`)
    )

  it("hidden inputs and outputs are used at the edges and where a reason stands", () => {
    const allowed = new Set(exceptions.map(({ path, global }) => `${path} uses ${global}`))
    none(uses.filter((use) => !allowed.has(use)))
  })

  it("an exception that is not needed any more is gone", () => {
    none(exceptions.map(({ path, global }) => `${path} uses ${global}`).filter((use) => !uses.includes(use)))
  })

  it("protocol touches nothing of Node", () => {
    none(
      shipped
        .filter((source) => source.path.startsWith("packages/protocol/"))
        .flatMap((source) =>
          [
            ...bareImports(source).filter(isNode),
            ...source.globals.filter((global) => global.startsWith("process."))
          ].map((what) => `${source.path} uses ${what}`)
        )
    )
  })
})

describe("package manifests", () => {
  it("each has a description and the license", () => {
    none(
      manifests
        .filter((manifest) => manifest.license !== "MIT" || (manifest.description ?? "").length < 20)
        .map((manifest) => manifest.name)
    )
  })

  it("versions are exact and stand in the catalog", () => {
    none(
      [...manifests, rootManifest].flatMap((manifest) =>
        Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
          .filter(([name, version]) =>
            version === "catalog:" ? catalog[name] === undefined : !/^(?:workspace:\*|\d+\.\d+\.\d+)$/.test(version)
          )
          .map(([name, version]) => `${manifest.name}: ${name} ${version}`)
      )
    )
    assert.isNotEmpty(Object.keys(catalog))
    none(
      Object.entries(catalog)
        .filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/.test(version))
        .map(([name, version]) => `${name} ${version}`)
    )
  })

  it("the dependencies follow the arrows too", () => {
    none(
      areas.flatMap((area) =>
        Object.keys(manifestOf(area)?.dependencies ?? {})
          .filter((name) => name.startsWith("@tackroom/"))
          .filter((name) => !area.imports.some((allowed) => packageOf(allowed) === name))
          .map((name) => `${area.name} depends on ${name}`)
      )
    )
  })

  it("protocol depends on effect alone", () => {
    const protocol = manifests.find((manifest) => manifest.name === "@tackroom/protocol")
    assert.deepStrictEqual(Object.keys(protocol?.dependencies ?? {}), ["effect"])
    assert.deepStrictEqual(Object.keys(protocol?.peerDependencies ?? {}), [])
  })

  it("the export maps are the pinned ones", () => {
    const published = manifests.filter((manifest) => !manifest.private)
    assert.deepStrictEqual(
      Object.fromEntries(published.map((manifest) => [manifest.name, manifest.exports])),
      exportMaps
    )
  })

  it("what is published is the built half of the same map [RT-008]", () => {
    const built = (target: string): unknown => {
      const [, stem] = /^\.\/src\/(.*)\.ts$/.exec(target) ?? []
      return stem === undefined ? target : { types: `./dist/${stem}.d.ts`, default: `./dist/${stem}.js` }
    }
    for (const manifest of manifests.filter((one) => !one.private)) {
      assert.deepStrictEqual(
        manifest.publishConfig["exports"],
        Object.fromEntries(
          Object.entries(exportMaps[manifest.name] ?? {}).map(([key, target]) => [key, built(target)])
        ),
        manifest.name
      )
      const rewritten = Object.entries(manifest.imports).map(([key, conditions]) => [
        key,
        JSON.parse(JSON.stringify(conditions), (_key, value: unknown) =>
          typeof value === "string" ? value.replace(/^\.\/src\/(.*)\.ts$/, "./dist/$1.js") : value
        )
      ])
      assert.deepStrictEqual(manifest.publishConfig["imports"] ?? {}, Object.fromEntries(rewritten), manifest.name)
    }
  })
})

describe("what an entry pulls in", () => {
  const heavy = (modules: ReadonlyArray<string>): ReadonlyArray<string> =>
    modules.filter(
      (module) =>
        heavyPackages.some((name) => module.includes(`/node_modules/${name}/`)) ||
        /\/sdk\/src\/store\/(?:sqlite|postgres)\//.test(module)
    )

  for (const entry of [
    "@tackroom/protocol",
    "@tackroom/protocol/events",
    "@tackroom/protocol/run",
    "@tackroom/protocol/scenario",
    "@tackroom/protocol/text"
  ]) {
    it(`${entry} bundles for a browser`, async () => {
      const graph = await browserGraph(entry)
      assert.isAbove(graph.modules.length, 1)
      assert.deepStrictEqual([...graph.builtins, ...graph.unresolved], [])
    })
  }

  for (const entry of ["@tackroom/sdk", "@tackroom/sdk/capabilities"]) {
    it(`${entry} bundles for a browser, without a store driver or a harness SDK [RT-001, RT-004]`, async () => {
      const graph = await browserGraph(entry)
      assert.isAbove(graph.modules.length, 1)
      assert.deepStrictEqual([...graph.builtins, ...graph.unresolved], [])
      assert.deepStrictEqual(heavy(graph.modules), [])
    })
  }

  for (const entry of ["@tackroom/sdk", "@tackroom/sdk/effect", "@tackroom/sdk/capabilities", "@tackroom/sdk/client"]) {
    it(`Node loads no store driver and no harness SDK for ${entry} [RT-001]`, async () => {
      const modules = await loadedBy(entry)
      assert.isAbove(modules.length, 1)
      assert.deepStrictEqual(heavy(modules), [])
    })
  }

  it("Node loads no harness SDK for all factories together [RT-002]", async () => {
    const modules = await loadedBy("@tackroom/sdk/harnesses")
    assert.isAbove(modules.length, 1)
    assert.deepStrictEqual(heavy(modules), [])
  })

  it("the SQLite store brings its driver on open only [STO-050]", async () => {
    const modules = await loadedBy("@tackroom/sdk/stores/sqlite")
    assert.isAbove(modules.length, 1)
    assert.deepStrictEqual(
      modules.filter((module) => module.includes("/node_modules/better-sqlite3/")),
      []
    )
  })
})

describe("the reader of sources", () => {
  it("sees static, dynamic and type imports", () => {
    const source = parseSource(
      "a.ts",
      `import type { A } from "./A.ts"
       import { type B } from "./B.ts"
       import { c } from "c"
       export * from "./D.ts"
       const e = import("e")
       let f: import("./F.ts").F
       const g = import(name)`
    )
    assert.deepStrictEqual(
      source.imports.map(({ specifier, typeOnly, dynamic }) => [specifier, typeOnly, dynamic]),
      [
        ["./A.ts", true, false],
        ["./B.ts", true, false],
        ["c", false, false],
        ["./D.ts", false, false],
        ["e", false, true],
        ["./F.ts", true, false],
        [undefined, false, true]
      ]
    )
  })

  it("sees globals, and not their namesakes", () => {
    const source = parseSource(
      "a.ts",
      `console.log(process["env"], Date.now(), new Date(), new Date(0), Clock.now(), x.process.env) // Math.random()`
    )
    assert.deepStrictEqual(source.globals, ["console.log", "process.env", "Date.now", "new Date()"])
  })
})
