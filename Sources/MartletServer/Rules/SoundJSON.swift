internal import MartletModel
internal import MartletProtocol

/// Refuses JSON that can be read in two ways, which `JSONDecoder` lets pass: of a member that stands
/// twice it takes one, and nobody could say which rule counts.
enum SoundJSON {
    /// - Parameter file: What the bytes are of, as a sentence begins with it.
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
