import Foundation
import Martlet

let client = try await MartletClient.open(
    path: "team.sqlite", schema: "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    server: URL(string: "http://127.0.0.1:8080"), token: "falcon-secret")

try await client.write { try $0.insert("teams", ["name": "Falcons"]) }
client.start()  // in step from now on: others' changes come at once, own ones go out
try await client.sync()
for team in try await client.read({ try $0.rows("SELECT id, name FROM teams") }) {
    print(team["id"] ?? .null, team["name"] ?? .null)
}
