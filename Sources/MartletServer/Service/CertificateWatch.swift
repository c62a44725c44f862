internal import HTTPKit
internal import Synchronization
internal import SystemKit

/// Makes the server use a renewed TLS certificate, and warns the operator of one that expires.
final class CertificateWatch: Sendable {
    /// The number of seconds before the end at which the operator is first warned, and then once a
    /// day.
    private static let warnedBefore: Int64 = 14 * day
    private static let day: Int64 = 86_400

    private let files: HTTPServerOptions.TLSFiles
    private let log: ServerLog
    /// Returns the time, in milliseconds since 1970.
    private let now: @Sendable () -> Int64
    private let stamps: Mutex<[FileStamp?]>
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Notes the state of the files. Call this before the server reads them.
    init(
        _ files: HTTPServerOptions.TLSFiles, log: ServerLog, now: @escaping @Sendable () -> Int64
    ) {
        self.files = files
        self.log = log
        self.now = now
        stamps = Mutex(Self.stamps(of: files))
    }

    private static func stamps(of files: HTTPServerOptions.TLSFiles) -> [FileStamp?] {
        [FileStamp(path: files.certificatePath), FileStamp(path: files.keyPath)]
    }

    /// Begins to check the files.
    ///
    /// - Parameter pause: The time between two checks.
    func start(_ http: HTTPServer, every pause: Duration) {
        task.withLock {
            $0 = Task {
                var warned: Int64?
                repeat {
                    if await renew(http) { warned = nil }
                    let seconds = now() / 1_000
                    guard let end = await http.counters().certificateEnd,
                        end - seconds < Self.warnedBefore,
                        Self.isDue(at: seconds, warned: warned, end: end)
                    else { continue }
                    warned = seconds
                    warn(of: end, at: seconds)
                } while (try? await Task.sleep(for: pause)) != nil
            }
        }
    }

    func stop() {
        task.withLock { $0?.cancel() }
    }

    /// Makes the server read files that have changed.
    ///
    /// - Returns: True if it uses them.
    private func renew(_ http: HTTPServer) async -> Bool {
        let found = Self.stamps(of: files)
        let isNew = stamps.withLock { stamps in
            defer { stamps = found }
            return stamps != found
        }
        guard isNew else { return false }
        do throws(HTTPServerError) {
            try await http.renewTLS()
            log.log(.info, "certificate", [("reason", .text("The certificate was read again."))])
            return true
        } catch {
            log.log(
                .error, "certificate",
                [
                    (
                        "reason",
                        .text("\(error) The server goes on with the certificate that it has.")
                    ),
                    (
                        "remedy",
                        .text("Put both files in place; the server reads them without a restart.")
                    ),
                ])
            return false
        }
    }

    /// Returns whether to warn: once a day, and once when the certificate has expired.
    static func isDue(at seconds: Int64, warned: Int64?, end: Int64) -> Bool {
        guard let warned else { return true }
        return seconds - warned >= day || warned < end && end <= seconds
    }

    private func warn(of end: Int64, at seconds: Int64) {
        let hasEnded = end <= seconds
        log.log(
            hasEnded ? .error : .warning, "certificate",
            [
                (
                    "reason",
                    .text(
                        hasEnded
                            ? "The TLS certificate has ended; devices do not connect."
                            : "The TLS certificate ends soon.")
                ),
                ("hoursLeft", .number(Int((end - seconds) / 3_600))),
                ("remedy", .text("Renew its files; the server reads them without a restart.")),
            ])
    }
}
