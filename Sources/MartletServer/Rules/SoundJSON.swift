internal import MartletModel
internal import MartletProtocol

/// Refuses JSON that can be read in two ways. `JSONDecoder` accepts it: if a member occurs twice it
/// takes one, and nobody could say which rule counts.
enum SoundJSON {
    /// Checks the bytes of a file.
    ///
    /// - Parameter file: The name of the file, as a sentence begins with it.
    /// - Throws: `ServerFailure` if the bytes are no JSON, or a member occurs twice.
    static func check(_ bytes: [UInt8], of file: String) throws(ServerFailure) {
        do {
            var json = JSONReader(bytes)
            try json.skipValue()
            try json.finish()
        } catch {
            throw ServerFailure("\(file) is not JSON as it should be: \(error.description)")
        }
    }
}
