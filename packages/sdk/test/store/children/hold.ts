/** Takes the write lock of a store's file, prints `held`, and gives it back when a line comes in. Argument: the file. */
import Database from "better-sqlite3"

const db = new Database(process.argv[2] ?? "")
db.exec("BEGIN IMMEDIATE")
process.stdout.write("held\n")
process.stdin.once("data", () => {
  db.exec("COMMIT")
  db.close()
  process.stdout.write("released\n")
  process.stdin.pause()
})
