import MartletModel
import MartletProtocol
import Testing

/// What a sound change set may look like beyond the written form.
@Suite("Reading change sets")
struct ReadingTests {
    @Test("members in any order, white space anywhere, lists left out")
    func orderOfMembers() throws {
        let text = #"""
             { "u" : { "attributes" : { "2" : { "b" : 1 } , "1" : { "a" : true , "b" : null } } ,
               "update" : [ 1 , 2 ] } , "sequence" : 4 ,
               "t":{}, "types" : [ "t" , "u" ],"identifier":"i" }
            """#
        let set = try SyncCoder.decodeChangeSet([UInt8](text.utf8))
        #expect(set.identifier == "i")
        #expect(set.sequence == 4)
        #expect(set.types.map(\.name) == ["t", "u"])
        #expect(set.types[0] == TypeChanges(name: "t"))
        #expect(set.types[1].update == [.integer(1), .integer(2)])
        #expect(set.types[1].entries.map(\.id) == [.integer(2), .integer(1)])
        #expect(
            set.types[1].entries[0].attributes == Attributes(names: ["b"], values: [.integer(1)]))
        #expect(
            set.types[1].entries[1].attributes
                == Attributes(names: ["a", "b"], values: [.boolean(true), .null]))
    }

    @Test("an unknown member that is no array or object is passed over")
    func unknownMembers() throws {
        let text =
            #"{"later":1,"types":["t"],"soon":"x","t":{"delete":[1]},"flag":true,"none":null}"#
        let set = try SyncCoder.decodeChangeSet([UInt8](text.utf8))
        #expect(set == ChangeSet(types: [TypeChanges(name: "t", delete: [.integer(1)])]))
    }

    @Test("ids of both kinds, told apart by how they are written")
    func ids() throws {
        let text = #"""
            {"types":["t"],"t":{"create":["7","a\nb"],"update":[8,"09"],"delete":["é","e\u0301"],
            "attributes":{"09":{"x":4},"8":{"x":3},"7":{"x":1},"a\u000ab":{"x":2},
            "é":{"revision":5}}}}
            """#
        let type = try SyncCoder.decodeChangeSet([UInt8](text.utf8)).types[0]
        #expect(type.create == [.text("7"), .text("a\nb")])
        #expect(type.delete == [.text("\u{E9}"), .text("e\u{301}")])
        #expect(
            type.entries.map(\.id)
                == [.text("09"), .integer(8), .text("7"), .text("a\nb"), .text("\u{E9}")])
        #expect(type.entries[4].revision == 5)
    }

    @Test("the extreme integers are exact, and no record takes another's attributes")
    func extremes() throws {
        let text = #"""
            {"types":["t"],"t":{"update":[9223372036854775807,-9223372036854775808],"attributes":{
            "9223372036854775807":{"a":9007199254740993,"b":-0,"c":-9223372036854775808},
            "-9223372036854775808":{"a":1.5,"b":-0.0,"d":1E2}}}}
            """#
        let entries = try SyncCoder.decodeChangeSet([UInt8](text.utf8)).types[0].entries
        #expect(entries.map(\.id) == [.integer(.max), .integer(.min)])
        #expect(
            entries[0].attributes
                == Attributes(
                    names: ["a", "b", "c"],
                    values: [.integer(9_007_199_254_740_993), .integer(0), .integer(.min)]))
        #expect(
            entries[1].attributes
                == Attributes(
                    names: ["a", "b", "d"], values: [.real(1.5), .real(-0.0), .real(100)]))
    }

    @Test("records whose members differ in number, order and spelling")
    func templates() throws {
        let records = [
            #"{"a":1,"revision":7,"b":2}"#, #"{"a":1,"revision":8,"b":2}"#, #"{"a":1}"#, "{}",
            #"{"b":2,"a":1}"#, #"{"b":2,"\u0061":1}"#, #"{"b":2,"a":1,"c":3}"#,
            #"{"b":2,"__oldId__":"x","revision":9}"#,
        ]
        let members = records.enumerated().map { #""\#($0.offset + 1)":\#($0.element)"# }
        let ids = (1...records.count).map(String.init).joined(separator: ",")
        let text =
            #"{"types":["t"],"t":{"create":["# + ids + #"],"attributes":{"#
            + members.joined(separator: ",") + "}}}"
        let entries = try SyncCoder.decodeChangeSet([UInt8](text.utf8)).types[0].entries
        #expect(
            entries.map(\.attributes.names)
                == [
                    ["a", "b"], ["a", "b"], ["a"], [], ["b", "a"], ["b", "a"], ["b", "a", "c"],
                    ["b"],
                ])
        #expect(entries.map(\.revision) == [7, 8, nil, nil, nil, nil, nil, 9])
        #expect(entries.map(\.oldID) == Array(repeating: nil, count: 7) + [.text("x")])
        #expect(entries[5].attributes.values == [.integer(2), .integer(1)])
    }

    @Test("every escape, and characters of one to four bytes")
    func textsWithEscapes() throws {
        let text = #"{"a":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00\u0000é€😀"}"#
        #expect(
            try SyncCoder.decodeAttributes([UInt8](text.utf8))["a"]
                == .text("\"\\/\u{8}\u{C}\n\r\tAé€😀\u{0}é€😀"))
        for scalar in [
            "\u{80}", "\u{7FF}", "\u{800}", "\u{D7FF}", "\u{E000}", "\u{FFFF}",
            "\u{10000}", "\u{10FFFF}",
        ] {
            let bytes = [UInt8](("{\"a\":\"" + scalar + "\"}").utf8)
            #expect(try SyncCoder.decodeAttributes(bytes)["a"] == .text(scalar))
        }
    }

    @Test("100,000 ids in any order cost what they cost in order, nearly")
    func shuffled() throws {
        // Were it quadratic, this would take hours.
        let numbers = (1...100_000).map { ($0 * 7919) % 100_003 }
        let ids = numbers.map(String.init).joined(separator: ",")
        let entries = numbers.sorted().map { #""\#($0)":{"a":\#($0)}"# }.joined(separator: ",")
        let text = #"{"types":["t"],"t":{"update":["# + ids + #"],"attributes":{"# + entries + "}}}"
        let type = try SyncCoder.decodeChangeSet([UInt8](text.utf8)).types[0]
        #expect(type.entries.count == 100_000)
        #expect(type.entries.allSatisfy { $0.attributes["a"] == $0.id.value })
    }

    @Test("texts that differ only in how accents are composed are different ids and values")
    func composition() {
        #expect(RecordID.text("\u{E9}") != .text("e\u{301}"))
        #expect(Value.text("\u{E9}") != .text("e\u{301}"))
        #expect(Set([RecordID.text("\u{E9}"), .text("e\u{301}")]).count == 2)
        #expect(RecordID.text("e\u{301}") < .text("\u{E9}"))
        #expect(RecordID.text("a") == .text("a"))
        #expect(RecordID.integer(1) != .text("1"))
    }
}
