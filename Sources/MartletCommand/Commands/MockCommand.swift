import Foundation
import MartletTesting

extension CommandDescription {
    static let mock = CommandDescription(
        name: "mock",
        summary: "play a scripted server, right or wrong to the byte, for tests of a client",
        discussion: """
            Answers on this machine what the script says; the format is in docs/mock.md. GET
            /mock/requests tells what was asked, GET /mock/verdict whether all that the script
            expects has happened. Ends on SIGTERM and SIGINT, with 1 where it has not.
            """,
        options: [
            Option(name: "script", value: "FILE", help: "the script, JSON"),
            Option(name: "port", value: "N", help: "default 0: a free one, which is printed"),
            Option(
                name: "end-with-input",
                help: "end when standard input ends, so that none outlives who started it"),
        ],
        examples: [
            Example("mock --script cut.json", "prints where it listens"),
            Example("mock --script cut.json --port 8090 --end-with-input", "below a test"),
        ]
    ) { arguments, console in
        guard let path = arguments.value("script") else {
            throw UsageError("mock needs --script FILE.", command: "mock")
        }
        let port = try arguments.integer("port", in: 0...65_535, default: 0)
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw CommandError("The script \(path) cannot be read.")
        }
        let script: MockScript
        do {
            script = try MockScript(
                json: [UInt8](bytes),
                folder: URL(fileURLWithPath: path).deletingLastPathComponent().path)
        } catch {
            throw CommandError("\(path), \(error)")
        }
        let verdict = try await MockServer.run(
            script, port: port, endsWithInput: arguments.has("end-with-input")
        ) { port in
            console.print("listening on http://127.0.0.1:\(port)")
        }
        if arguments.isJSON {
            console.print(String(decoding: verdict.json, as: UTF8.self))
        }
        guard !verdict.isGood else { return .done }
        throw CommandError(
            "What the script expects did not happen:\n"
                + verdict.complaints.map { "  \($0)" }.joined(separator: "\n"))
    }
}
