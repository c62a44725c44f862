/// A table with a declaration was used before it was made: a signal to make it and run the work
/// again, never seen outside.
package struct MissingTable: Error {
    package let name: String
    package let declaration: String
    /// Whether it holds nothing but what can be made again from other tables; its declaration is
    /// then any SQL, and is not checked.
    package var isDerived = false

    /// What a declaration that makes another table is refused with.
    package var isNotDeclared: StoreError {
        StoreError(
            .schema,
            "The declaration of the table “\(name)” makes no table of that name; correct it.")
    }

    /// Tables that one piece of work may meet for the first time; more would be a loop.
    package static let limit = 100
}
