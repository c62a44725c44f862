// The names that examples of doc comments use without declaring them. Nothing here runs.
import Foundation
import HTTPKit
import Martlet
import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServer
import MartletServerCore
import MartletTesting
import PostgresKit
import SQLiteKit

struct Player: Codable, Hashable, Sendable, ReadableRecord {
    var id: RecordID?
    var name = ""
    var club: String?
    var team: RecordID?
    var captainID: RecordID?
    var shirt: Int?
    var height: Int?
}

struct Players: Table {
    typealias Element = Player
    let tableName = "players"
    let id = Column("id", \Player.id)
    let name = Column("name", \Player.name)
    let club = Column("club", \Player.club)
    let team = Column("team", \Player.team)
    let captainID = Column("captain_id", \Player.captainID)
    let height = Column("height", \Player.height)
}

typealias Person = Player

struct Club: Codable, Sendable, ReadableRecord {
    var name = ""
}

struct Clubs: Table {
    typealias Element = Club
    let tableName = "clubs"
}

struct Matches: Table {
    typealias Element = Player
    let tableName = "matches"
}

struct Page {
    let clubs: [Club] = []

    func matches(ofClubs keys: [RecordID]) -> [Player] { [] }
}

struct TotalsHandler: EntityHandler {
    func take(_ change: RemoteChange, in context: RemoteContext) throws {}
}

struct Roster: DataCenter {
    let database: any DatabaseAccess

    func observePlayers() -> DatabaseObservation<[Player]> { Players().observe(in: database) }
}

let players = Players()
let people = SplitTable("people", of: Player.self, key: "id", byColumns: [Players()])
let search = FullTextTable(on: players, columns: players.name)

func given<Thing>() -> Thing { fatalError("Examples are compiled only.") }

var player: Player { given() }
var client: MartletClient { given() }
var pool: DatabasePool { given() }
var database: any DatabaseAccess { given() }
var context: WriteContext { given() }
var roster: Roster { given() }
var path: String { given() }
var folder: String { given() }
var directory: URL { given() }
var schema: Schema { given() }
var identity: String { given() }
var script: String { given() }
var server: URL { given() }
var token: String { given() }
var typed: String { given() }
var key: RecordID { given() }
var simulation: Simulation { given() }
var world: SimulatedWorld { given() }
var report: CheckReport { given() }
var error: SyncError { given() }
var options: ClientOptions {
    get { given() }
    set {}
}
var configuration: ServerConfiguration {
    get { given() }
    set {}
}

var write: RowWrite { given() }
var results: [(athlete: String, seconds: Double)] { given() }
var pages: AsyncStream<Page> { given() }
var http: HTTPServer { given() }
var store: EmbeddedStore { given() }
var node: DataSetNode { given() }
var request: AdmittedRequest { given() }
var now: Int64 { given() }
var connection: Connection { given() }
var address: PostgresAddress { given() }
var settings: Settings { given() }
var teams: [Club] { given() }
var png: Data { given() }
var id: Int64 { given() }
var old: RecordID { given() }
var new: RecordID { given() }
var user: SimulatedUser {
    get { given() }
    set {}
}

func newToken(after refused: String?) async throws -> String? { given() }
func userWants(_ set: ParkedSet) -> Bool { given() }
func showSignIn(_ message: String) {}
func send(_ body: [UInt8]) {}
func refuse(_ problem: Problem) {}
func readLog(_ request: AdmittedRequest) {}
func decide(_ request: AdmittedRequest) {}
func show(_ thing: Any) {}
func show(_ done: some BinaryInteger, of total: some BinaryInteger) {}
