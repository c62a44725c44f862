/// The options of a demo.
public struct DemoOptions: Sendable {
    /// The number of devices, each with its own file and its own full copy.
    public var devices = 50
    /// The seed, which determines the generated records, the edits and the faults of the network.
    public var seed: UInt64 = 1
    /// A folder of CSV files to load; nil generates the youth-sports organisation.
    public var dataFolder: String?
    /// The schema of the folder's files as SQL DDL; nil takes `schema.sql` from the folder, or
    /// infers a schema if there is none.
    public var schema: String?
    /// The folder for the files. A second run continues with the files in it.
    public var directory: String
    /// The server's port; 0 for a free one.
    public var port = 0
    /// The program to start as the server, with its first arguments.
    public var program: String
    /// A program that starts PostgreSQL and Redis and takes commands as lines
    /// (`scripts/databases`). The devices then use two servers on PostgreSQL. Nil for one server on
    /// SQLite.
    public var databases: String?
    /// The number of rounds in which each device works.
    public var rounds = 8
    /// The size of the generated organisation.
    public var size = OrganisationSize.full
    /// The percentage of answers that are lost after the server has processed the request.
    public var lostAnswers = 20
    /// The percentage of requests that never arrive.
    public var lostRequests = 5
    /// The number of batches in a thousand in whose place a live connection is cut.
    public var cutStreams = 10
    /// The number of revisions after which the server makes a snapshot.
    public var snapshotEvery = 200
    /// The server's memory for the newest change sets, in MiB; nil leaves it at its default.
    public var cache: Int?
    /// The number of attempts at an exchange before the demo fails.
    public var tries = 60

    public init(directory: String, program: String) {
        self.directory = directory
        self.program = program
    }

    /// The options of every server, for all storages.
    var serving: [String] {
        ["--log", "warning", "--snapshot-every", String(snapshotEvery)]
            + (cache.map { ["--cache", String($0)] } ?? [])
    }
}
