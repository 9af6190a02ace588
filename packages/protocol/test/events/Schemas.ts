import { Schema, SchemaAST } from "effect"

/** The schemas among the exports of a module, by export name. */
export const schemasOf = (module: Readonly<Record<string, unknown>>): ReadonlyArray<readonly [string, Schema.Top]> =>
  Object.entries(module).flatMap(([name, value]) => (Schema.isSchema(value) ? [[name, value] as const] : []))

/** Every field name reachable from a schema, on its encoded side. */
export const fieldNames = (schema: Schema.Top): ReadonlySet<string> => {
  const names = new Set<string>()
  const seen = new Set<SchemaAST.AST>()
  const walk = (ast: SchemaAST.AST): void => {
    if (seen.has(ast)) return
    seen.add(ast)
    switch (ast._tag) {
      case "Objects":
        for (const property of ast.propertySignatures) {
          names.add(String(property.name))
          walk(property.type)
        }
        for (const index of ast.indexSignatures) walk(index.type)
        return
      case "Arrays":
        for (const element of [...ast.elements, ...ast.rest]) walk(element)
        return
      case "Union":
        for (const member of ast.types) walk(member)
        return
      case "Suspend":
        return walk(SchemaAST.toEncoded(ast.thunk()))
      default:
        return
    }
  }
  walk(SchemaAST.toEncoded(schema.ast))
  return names
}
