/// The answer to `GET /schema`: a data set's tables and its identity.
struct ServerTables: Decodable, Sendable {
    /// The statements that make the tables.
    let ddl: String
    /// The data set's identity; an older server does not say it.
    let dataSet: String?
}
