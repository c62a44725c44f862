/// What a demo is started with.
public struct DemoOptions: Sendable {
    /// Devices, each with its own file and its own full copy.
    public var devices = 50
    /// Decides the generated records, the edits and what the network loses.
    public var seed: UInt64 = 1
    /// A folder of CSV files to load; nil generates the youth-sports organisation.
    public var dataFolder: String?
    /// The schema of the folder's files as SQL DDL; nil takes `schema.sql` from the folder, and
    /// where there is none finds one out.
    public var schema: String?
    /// Where the files go; a second run goes on with what it finds.
    public var directory: String
    /// The server's port; 0 takes a free one.
    public var port = 0
    /// The program to start as the server, with its first arguments.
    public var program: String
    /// A program that starts PostgreSQL and Redis and obeys lines (`scripts/databases`): the devices
    /// then talk to two servers on PostgreSQL. Nil for one server on SQLite.
    public var databases: String?
    /// How often each device goes to work.
    public var rounds = 8
    /// The generated organisation's size.
    public var size = OrganisationSize.full
    /// Percent of the answers that are lost after the server has worked.
    public var lostAnswers = 20
    /// Percent of the requests that never arrive.
    public var lostRequests = 5
    /// Permille of the batches in whose place a live connection is cut.
    public var cutStreams = 10
    /// The server makes a snapshot after so many revisions.
    public var snapshotEvery = 200
    /// The server's memory for the newest change sets, in MiB; nil leaves it at its default.
    public var cache: Int?
    /// How often a device tries an exchange before the demo gives up on it.
    public var tries = 60

    public init(directory: String, program: String) {
        self.directory = directory
        self.program = program
    }

    /// What every server is started with, however the data is kept.
    var serving: [String] {
        ["--log", "warning", "--snapshot-every", String(snapshotEvery)]
            + (cache.map { ["--cache", String($0)] } ?? [])
    }
}
