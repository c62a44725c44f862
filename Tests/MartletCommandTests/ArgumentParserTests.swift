import Foundation
import Testing

@testable import MartletCommand

@Suite("The command line")
struct ArgumentParserTests {
    private let parser = ArgumentParser(commands: CommandDescription.all)

    private func parsed(_ line: String) throws -> ParsedArguments {
        guard
            case .run(_, let arguments) = try parser.parse(
                line.split(separator: " ").map(String.init))
        else { throw UsageError("not a command to run") }
        return arguments
    }

    private func complaint(_ line: String) -> String {
        do {
            _ = try parser.parse(line.split(separator: " ").map(String.init))
            return ""
        } catch {
            return String(describing: error)
        }
    }

    @Test("reads values, switches and arguments in any order")
    func readsArguments() throws {
        let found = try parsed("import --json a.sqlite --set-size=50 x.csv --server http://h y.csv")
        #expect(found.command == "import")
        #expect(found.positional == ["a.sqlite", "x.csv", "y.csv"])
        #expect(found.isJSON)
        #expect(try found.integer("set-size", in: 1...100, default: 1) == 50)
        #expect(found.value("server") == "http://h")
        #expect(try parsed("export -- a.sqlite --out").positional == ["a.sqlite", "--out"])
    }

    @Test("knows commands of two words, and collects options that repeat")
    func groups() throws {
        let found = try parsed("token create team --data d --role a --role b")
        #expect(found.command == "token create")
        #expect(found.values["role"] == ["a", "b"])
        #expect(complaint("token").contains("token create, token list, token revoke"))
    }

    @Test(
        "says what is wrong, and what may have been meant",
        arguments: [
            ("stauts a", "Did you mean “status”?"), ("xyzzy", "There is no command “xyzzy”."),
            ("status a --recepits 3", "Did you mean --receipts?"),
            ("status a --receipts", "--receipts needs a value: N."),
            ("status a --json=1", "--json takes no value."),
            ("status", "Missing FILE: the device file."),
            ("status a b", "Nothing is expected at “b”."),
            ("serve --port 1 --port 2", "--port is given twice."),
            ("status a -x", "Unknown option -x."),
            ("status a --nothing-like-it", "martlet status --help"),
        ])
    func complains(line: String, sentence: String) {
        #expect(complaint(line).contains(sentence))
    }

    @Test("numbers out of range are refused")
    func numbers() throws {
        let found = try parsed("demo --devices 1 --seed -4")
        #expect(throws: UsageError.self) { try found.integer("devices", in: 2...5, default: 3) }
        #expect(throws: UsageError.self) { try found.seed("seed") }
        #expect(try parsed("demo").integer("devices", in: 2...5, default: 3) == 3)
    }

    @Test("help is asked for in several ways", arguments: ["help", "--help", "-h", ""])
    func overview(line: String) throws {
        guard case .overview = try parser.parse(line.split(separator: " ").map(String.init)) else {
            Issue.record("\(line) is no overview")
            return
        }
        for help in ["help token list", "token list --help", "token list -h --nonsense"] {
            guard
                case .help(let command) = try parser.parse(
                    help.split(separator: " ").map(String.init))
            else {
                Issue.record("\(help) is no help")
                continue
            }
            #expect(command.name == "token list")
        }
    }

    @Test(
        "every command's page shows its options and an example",
        arguments: CommandDescription.all.map(\.name))
    func pages(name: String) throws {
        let command = try #require(CommandDescription.all.first { $0.name == name })
        let page = HelpText.page(command)
        #expect(page.hasPrefix(command.summary))
        for option in command.allOptions { #expect(page.contains("--\(option.name)")) }
        #expect(!command.examples.isEmpty)
        for example in command.examples {
            // What stands behind a `>` is the shell's.
            let words = example.line.split(separator: " ").prefix { $0 != ">" }.map(String.init)
            #expect(throws: Never.self) { try parser.parse(words) }
        }
    }

    @Test("the nearest word is near")
    func nearest() {
        #expect(Nearest.distance("sync", "snyc") == 1)
        #expect(Nearest.distance("", "abc") == 3)
        #expect(Nearest.word(to: "improt", in: ["export", "import"]) == "import")
        #expect(Nearest.word(to: "zzz", in: ["export", "import"]) == nil)
    }

    @Test("completion scripts name every command and option", arguments: ShellCompletion.allCases)
    func completion(shell: ShellCompletion) {
        let script = shell.script(CommandDescription.all)
        for command in CommandDescription.all {
            for word in command.name.split(separator: " ") { #expect(script.contains(word)) }
            for option in command.options { #expect(script.contains(option.name)) }
        }
    }

    @Test("JSON text is escaped")
    func jsonIsEscaped() {
        let value = JSONText.object([
            ("a\"", .text("\\ \n\u{1} é")), ("b", .list([.null, .boolean(true), .integer(-1)])),
            ("c", .real(.infinity)),
        ])
        #expect(
            value.description == #"{"a\"":"\\ \n\u0001 é","b":[null,true,-1],"c":null}"#)
    }

    @Test("a progress bar is full at the end and empty at the start")
    func bar() {
        #expect(ProgressBar.line("t", done: 0, of: 5, detail: "").contains("0 %  0/5"))
        #expect(ProgressBar.line("t", done: 5, of: 5, detail: "x").contains("100 %  5/5  x"))
        #expect(ProgressBar.line("t", done: 0, of: 0, detail: "").contains("100 %"))
    }

    @Test("the documentation names every command and every option")
    func documented() throws {
        let docs = URL(fileURLWithPath: #filePath)
            .appendingPathComponent("../../../docs").standardized
        let pages = try FileManager.default.contentsOfDirectory(
            at: docs, includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "md" }
        let text = try pages.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        let list = try String(
            contentsOf: docs.appendingPathComponent("command-line.md"), encoding: .utf8)
        for command in CommandDescription.all {
            #expect(
                list.contains("`\(command.name)`"), "docs/command-line.md lacks “\(command.name)”")
            for option in command.options {
                let ranges = text.ranges(of: "--" + option.name)
                let isNamed = ranges.contains { range in
                    guard range.upperBound < text.endIndex else { return true }
                    let next = text[range.upperBound]
                    return !next.isLetter && next != "-"
                }
                #expect(isNamed, "no page has --\(option.name) of “\(command.name)”")
            }
        }
    }
}
