import CompressionKit
package import Foundation

/// A CSV file on disk, `NAME.csv` or `NAME.csv.gz`, with the records of the type NAME.
package struct CSVFile: Hashable, Sendable {
    package let url: URL
    /// The entity type's name: the file's name without its endings.
    package let type: String
    package let isCompressed: Bool
    /// The file's name with its ending.
    package var name: String { Self.name(of: url) }

    /// - Throws: `TransferError` if the name has another ending.
    package init(_ url: URL) throws(TransferError) {
        let name = Self.name(of: url)
        let ending = Self.ending(of: name)
        guard let ending, name.utf8.count > ending.utf8.count else {
            throw TransferError(
                "\(name) is not a CSV file; its name should end in .csv or .csv.gz.")
        }
        self.url = url
        type = String(decoding: name.utf8.dropLast(ending.utf8.count), as: UTF8.self)
        isCompressed = ending == ".csv.gz"
    }

    /// Returns the last component of the path, with all of its letters: `lastPathComponent` leaves
    /// a byte order mark out.
    private static func name(of url: URL) -> String {
        String(
            decoding: url.path.utf8.split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
    }

    /// Returns the ending of a name. A name may have a letter that Swift combines with the
    /// following point to one character.
    private static func ending(of name: String) -> String? {
        [".csv.gz", ".csv"].first { name.utf8.suffix($0.utf8.count).elementsEqual($0.utf8) }
    }

    /// Returns the CSV files at the paths, and those in the folders at the paths, ordered by the
    /// names of their types.
    /// - Throws: `TransferError` if a path does not exist, a folder has no CSV file, or two files
    ///   have records of the same type.
    package static func find(_ paths: [String]) throws -> [CSVFile] {
        var files: [CSVFile] = []
        for path in paths {
            let url = URL(fileURLWithPath: path)
            guard FileManager.default.fileExists(atPath: path) else {
                throw TransferError("There is no file or folder \(path).")
            }
            guard try url.resourceValues(forKeys: [.isDirectoryKey]).isDirectory ?? false else {
                files.append(try CSVFile(url))
                continue
            }
            let found = try FileManager.default.contentsOfDirectory(atPath: path)
                .filter { ending(of: $0) != nil }
                .map { try CSVFile(url.appendingPathComponent($0)) }
            guard !found.isEmpty else {
                throw TransferError("The folder \(path) has no .csv or .csv.gz files.")
            }
            files += found
        }
        files.sort { $0.type < $1.type }
        for (one, next) in zip(files, files.dropFirst()) where one.type == next.type {
            throw TransferError(
                "\(one.name) and \(next.name) both hold"
                    + " \(one.type); name one of them.")
        }
        return files
    }

    /// Returns the file's size on disk in bytes.
    /// - Throws: Foundation's error if the file cannot be read.
    package func byteCount() throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
        return (attributes[.size] as? NSNumber)?.intValue ?? 0
    }

    /// Returns a reader at the file's first record.
    /// - Throws: Foundation's error if the file cannot be opened.
    package func open() throws -> CSVReader {
        let handle = try FileHandle(forReadingFrom: url)
        let chunk = isCompressed ? 32 << 10 : 256 << 10
        let gzip = isCompressed ? GzipReader() : nil
        return CSVReader(file: name) {
            while true {
                guard let data = try handle.read(upToCount: chunk), !data.isEmpty else {
                    try gzip?.finish()
                    return nil
                }
                guard let gzip else { return [UInt8](data) }
                let bytes = try gzip.inflate([UInt8](data))
                if !bytes.isEmpty { return bytes }
            }
        }
    }
}
