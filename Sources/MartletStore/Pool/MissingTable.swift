/// A table with a declaration was used before it was made: a signal to make it and run the work
/// again, never seen outside.
package struct MissingTable: Error {
    package let name: String
    package let declaration: String

    /// Tables that one piece of work may meet for the first time; more would be a loop.
    package static let limit = 100
}
