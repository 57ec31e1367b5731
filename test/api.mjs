// Writes what each published package offers into its api.md, so that a change of it shows in a diff; with --check it compares
// instead. A library's report has the signatures of its public modules, from the emitted declarations, and below them what these
// name without exporting it, such as the fields of an error. The report of the command line has its help texts.
//
// Not @microsoft/api-extractor: it leaves out base classes that are not exported, which is where the fields of our errors and the
// members of our services are, and merges all modules into one list that numbers the names which several of them share.
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
// TypeScript 7 has no JavaScript API yet
import ts from "typescript6"

const root = fileURLToPath(new URL("..", import.meta.url))
const isCheck = process.argv.includes("--check")
const printer = ts.createPrinter({ removeComments: true })

const files = new Map()

/** A declaration file: its statements by the names that they declare, and what it imports or re-exports from where. */
const read = (path) => {
  if (files.has(path)) return files.get(path)
  if (!existsSync(path)) throw new Error(`${path} is not there: run pnpm build first`)
  const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true)
  const file = { source, declared: new Map(), imported: new Map(), externalImports: [], reexports: [] }
  files.set(path, file)
  const fileOf = (specifier) => resolve(dirname(path), specifier.text.replace(/\.(ts|js)$/, ".d.ts"))
  for (const statement of source.statements) {
    const from = statement.moduleSpecifier
    if (ts.isImportDeclaration(statement)) {
      if (!from.text.startsWith(".")) file.externalImports.push(statement)
      else {
        const bindings = statement.importClause.namedBindings
        for (const element of bindings.elements ?? [bindings]) {
          const isNamespace = ts.isNamespaceImport(element)
          const name = isNamespace ? undefined : (element.propertyName ?? element.name).text
          file.imported.set(element.name.text, { path: fileOf(from), name, isNamespace })
        }
      }
    } else if (ts.isExportDeclaration(statement)) {
      file.reexports.push({ statement, path: from === undefined ? undefined : fileOf(from) })
    } else {
      const names = ts.isVariableStatement(statement)
        ? statement.declarationList.declarations.map((declaration) => declaration.name.text)
        : [statement.name?.text]
      for (const name of names) file.declared.set(name, [...(file.declared.get(name) ?? []), statement])
    }
  }
  return file
}

const print = (node, source) =>
  printer.printNode(ts.EmitHint.Unspecified, node, source).replaceAll(/import\("effect\/(\w+)"\)\./g, "$1.")

/** The names of the properties of an object whose names alone are public, by `keyof typeof object`. */
const keysOf = (statements) =>
  statements[0].declarationList.declarations[0].type.members
    .map((member) => `    readonly ${member.name.getText()}: unknown;`)
    .toSorted()

/** The signatures of a module, and of what they name without it being exported; not of what other public modules export. */
const describe = (path, publicPaths) => {
  const lines = []
  const unexported = new Map()
  const seen = new Set()

  const need = (name, path_, isKeysOnly) => {
    const { declared, imported, source } = read(path_)
    const elsewhere = imported.get(name)
    if (elsewhere !== undefined) {
      if (!elsewhere.isNamespace && !publicPaths.has(elsewhere.path)) need(elsewhere.name, elsewhere.path, isKeysOnly)
      return
    }
    const key = `${path_} ${name}`
    if (seen.has(key) || !declared.has(name)) return
    seen.add(key)
    const statements = declared.get(name)
    if (isKeysOnly) {
      unexported.set(key, [name, [`declare const ${name}: {`, ...keysOf(statements), "};"].join("\n")])
      return
    }
    if (path_ !== path || !statements.some(isExported)) {
      const text = statements.map((statement) =>
        print(statement, source).replace(/^export (?=declare |interface |type )/, "")
      )
      unexported.set(key, [name, text.join("\n")])
    }
    for (const statement of statements) visit(statement, path_)
  }

  const visit = (node, path_) => {
    if (ts.isTypeOperatorNode(node) && ts.isTypeQueryNode(node.type) && ts.isIdentifier(node.type.exprName)) {
      need(node.type.exprName.text, path_, true)
      return
    }
    if (ts.isImportTypeNode(node) && node.argument.literal.text.startsWith(".")) {
      const from = resolve(dirname(path_), node.argument.literal.text.replace(/\.(ts|js)$/, ".d.ts"))
      if (!publicPaths.has(from)) need(node.qualifier.getText(), from, false)
    }
    // Namespace.Name, where the namespace is a module of ours
    const [namespace, member] = ts.isQualifiedName(node)
      ? [node.left, node.right]
      : ts.isPropertyAccessExpression(node)
        ? [node.expression, node.name]
        : []
    const module = namespace && ts.isIdentifier(namespace) ? read(path_).imported.get(namespace.text) : undefined
    if (module?.isNamespace && !publicPaths.has(module.path)) need(member.text, module.path, false)
    if (ts.isIdentifier(node)) need(node.text, path_, false)
    node.forEachChild((child) => visit(child, path_))
  }

  const isExported = (statement) =>
    ts.getModifiers(statement)?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) ?? false

  const { declared, externalImports, reexports, source } = read(path)
  for (const statement of externalImports) lines.push(print(statement, source).replace(/^import type /, "import "))
  // whether `Effect` is imported from "effect/Effect", or was called import("effect/Effect"), is the compiler's affair
  const imports = lines.splice(0).filter((line) => !/^import \* as (\w+) from "effect\/\1";$/.test(line))
  lines.push(...imports.toSorted())
  if (lines.length > 0) lines.push("")

  // not the `export {}` that only says "a module"
  const named = reexports.filter(({ statement }) => statement.exportClause?.elements?.length !== 0)
  for (const { statement } of named) lines.push(print(statement, source))
  const locals = new Set(
    reexports.flatMap(({ statement, path: from }) =>
      from === undefined
        ? statement.exportClause.elements.map((element) => (element.propertyName ?? element.name).text)
        : []
    )
  )
  const exported = [...declared].filter(([name, all]) => all.some(isExported) || locals.has(name))
  for (const [, all] of exported.toSorted(byName)) for (const statement of all) lines.push(print(statement, source))
  for (const [name] of exported) need(name, path, false)

  const rest = [...unexported].filter(([key]) => !exported.some(([name]) => key === `${path} ${name}`))
  if (rest.length > 0) lines.push("", "// named above, not exported")
  for (const [, [, text]] of rest.toSorted((one, other) => byName(one[1], other[1]))) lines.push(text)
  return lines.join("\n").trim()
}

const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0)
const byName = ([one, a], [other, b]) => compare(one, other) || compare(String(a), String(b))

/** The files behind the package's exports, and what they re-export, by the specifiers that reach them. */
const publicModules = (directory, { name, exports }) => {
  const modules = new Map()
  const isClosed = (subpath) => exports[subpath] === null
  for (const [subpath, target] of Object.entries(exports)) {
    if (target === null || typeof target === "string" || subpath.includes("internal")) continue
    if (!subpath.includes("*")) modules.set(join(directory, target.types), join(name, subpath))
    else {
      const sources = readdirSync(join(directory, "src")).filter((file) => file.endsWith(".ts"))
      for (const file of sources.toSorted()) {
        const module = basename(file, ".ts")
        const path = join(directory, target.types.replace("*", module))
        if (!isClosed(subpath.replace("*", module)) && !modules.has(path)) modules.set(path, `${name}/${module}`)
      }
    }
  }
  for (const path of [...modules.keys()]) {
    for (const { path: from } of read(path).reexports) {
      if (from !== undefined && !modules.has(from)) modules.set(from, `${name}: ${basename(from, ".d.ts")}`)
    }
  }
  return modules
}

const libraryReport = (directory, manifest) => {
  const modules = publicModules(directory, manifest)
  const publicPaths = new Set(modules.keys())
  return [...modules].map(
    ([path, title]) => `## ${title}\n\n\`\`\`typescript\n${describe(path, publicPaths)}\n\`\`\`\n`
  )
}

const commandReport = (directory, [command, bin]) => {
  const help = (...subcommand) =>
    execFileSync(process.execPath, [join(directory, bin), ...subcommand, "--help"], {
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined }
    })
      .replaceAll(/[ \t]+$/gm, "")
      .trim()
  const text = help()
  const subcommands = (/^SUBCOMMANDS\n((?: {2}.*\n?)+)/m.exec(text)?.[1] ?? "").matchAll(/^ {2}([a-z][a-z-]*)/gm)
  return [
    [command, text],
    ...Array.from(subcommands, ([, subcommand]) => [`${command} ${subcommand}`, help(subcommand)])
  ].map(([title, help_]) => `## ${title}\n\n\`\`\`text\n${help_}\n\`\`\`\n`)
}

/** The lines of a report, each with the heading that it stands under. */
const linesOf = (report) => {
  let heading = ""
  return report.split("\n").map((line) => {
    if (line.startsWith("## ")) heading = line.slice(3)
    return `${heading}\n${line}`
  })
}

/** The lines that one of two reports has and the other has not, under their headings. */
const difference = (before, after) => {
  const left = linesOf(before)
  const added = linesOf(after).filter((line) => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
  const byHeading = new Map()
  for (const [sign, lines] of [
    ["-", left],
    ["+", added]
  ]) {
    for (const [heading, line] of lines.map((each) => each.split("\n"))) {
      if (line === "") continue
      byHeading.set(heading, [...(byHeading.get(heading) ?? []), `    ${sign} ${line.trim()}`])
    }
  }
  const parts = [...byHeading].map(([heading, lines]) => `  ${heading}\n${lines.join("\n")}`)
  return parts.join("\n") || "  the same lines in another order"
}

let changed = 0
for (const entry of readdirSync(join(root, "packages")).toSorted()) {
  const directory = join(root, "packages", entry)
  const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"))
  if (manifest.private) continue
  const commands = Object.entries(manifest.bin ?? {})
  const report = [
    `# Public API of ${manifest.name}\n\nWritten by \`pnpm api\`; not to be edited by hand.\n`,
    ...(commands.length > 0
      ? commands.flatMap((command) => commandReport(directory, command))
      : libraryReport(directory, manifest))
  ].join("\n")
  const path = join(directory, "api.md")
  const before = existsSync(path) ? readFileSync(path, "utf8") : ""
  if (report === before) continue
  changed++
  if (!isCheck) writeFileSync(path, report)
  else
    console.error(
      `The public API of ${manifest.name} is not what packages/${entry}/api.md says:\n${difference(before, report)}\n`
    )
}
if (isCheck && changed > 0) {
  console.error(
    "If this is meant: run pnpm api, commit the report, and describe the change in a changeset (pnpm changeset)."
  )
  process.exit(1)
}
console.log(isCheck ? "the API reports are current" : `${changed} API report${changed === 1 ? "" : "s"} changed`)
