/// The answer to `GET /schema`: a data set's tables and its identity.
struct ServerTables: Decodable, Sendable {
    /// The statements that create the tables.
    let ddl: String
    /// The data set's identity; nil from an older server.
    let dataSet: String?
}
