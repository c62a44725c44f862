import MartletTesting
import Testing

@Suite("A mock's script")
struct MockScriptTests {
    private func fault(_ script: String) throws -> MockScriptError {
        try #require(throws: MockScriptError.self) { try MockScript(json: [UInt8](script.utf8)) }
    }

    @Test(
        "is refused with the line, the member and what to write",
        arguments: [
            ("{\"steps\": [", 1, "", "ends too early"),
            ("{\n\"step\": []}", 2, "step", "there is schema, dataSet"),
            ("{\"steps\": [\n{}]}", 2, "steps[0]", "\"on\""),
            ("{\"steps\": [{\"on\":\n\"sink\"}]}", 2, "steps[0].on", "\"stream\""),
            (
                "{\"steps\": [{\"on\": \"sync\", \"then\":\n\n{\"cut\": -1}}]}", 3,
                "steps[0].then.cut", "bytes, a whole number of 0"
            ),
            (
                "{\"steps\": [{\"on\": \"sync\", \"then\": {\"log\": true, \"text\": \"x\"}}]}", 1,
                "steps[0].then", "two answers"
            ),
            (
                "{\"steps\": [{\"on\": \"sync\", \"then\": {\"cut\": 1, \"truncate\": 1}}]}", 1,
                "steps[0].then", "exclude each other"
            ),
            (
                "{\"steps\": [{\"on\": \"poll\", \"then\": {\"parts\": []}}]}", 1,
                "steps[0].then.parts", "only a step on \"stream\""
            ),
            (
                "{\"steps\": [{\"on\": \"poll\", \"then\": {\"hold\": true}}]}", 1,
                "steps[0].then.hold", "only a stream"
            ),
            (
                "{\"steps\": [{\"on\": \"sync\", \"when\": {\"maxRevision\": 1}}]}", 1,
                "steps[0].when.maxRevision", "there is no “maxRevision”"
            ),
            (
                "{\"steps\": [{\"on\": \"sync\", \"then\": {\"problem\": {}}}]}", 1,
                "steps[0].then.problem", "needs a status"
            ),
            (
                "{\"steps\": [{\"on\": \"poll\",\n\"then\": {\"generate\": {\"type\": \"t\"}}}]}",
                2, "steps[0].then.generate", "how many records"
            ),
            ("{\"schema\": \"CREATE TABLE\"}", 1, "schema", "cannot be made"),
            ("{\"default\": \"maybe\"}", 1, "default", "\"refuse\""),
            ("{\"log\": [{\"types\": 3}]}", 1, "log[0]", "no change set"),
        ])
    func mistakes(script: String, line: Int, member: String, part: String) throws {
        let fault = try fault(script)
        #expect(fault.line == line)
        #expect(fault.member == member)
        #expect(fault.message.contains(part), "\(fault.message)")
    }

    @Test("a step that was used too rarely, and a request that fits none, are in the verdict")
    func verdict() async throws {
        let script = """
            {"default": "refuse", "steps": [
              {"name": "twice", "on": "sync", "times": 2},
              {"name": "maybe", "on": "snapshot", "optional": true}]}
            """
        try await playing(script) { server, port in
            let request = #"{"maxRevision": 0, "changeSets": []}"#
            _ = await MockConnection.exchange(port, "POST /sync", body: request)
            #expect(server.verdict.complaints == ["twice was used 1 of 2 times."])
            _ = await MockConnection.exchange(port, "POST /sync", body: request)
            #expect(server.verdict.isGood)
            let refused = await MockConnection.exchange(port, "GET /deltas?since=0")
            #expect(refused.hasPrefix("HTTP/1.1 404"))
            let verdict = await MockConnection.exchange(port, "GET /mock/verdict")
            #expect(
                verdict.httpBody
                    == #"{"ok":false,"complaints":["Request 3, GET /deltas, fits no step."]}"#)
        }
    }

    @Test("a request that is not as expected is in the verdict with what was found")
    func expectation() async throws {
        let script = """
            {"steps": [
              {"on": "poll", "when": {"since": 3}, "expect": {"client": "a", "rows": true}},
              {"name": "push", "on": "sync", "times": "any",
               "expect": {"body.changeSets.count": {"atLeast": 1}, "body.maxRevision": 4,
                          "header.Content-Type": {"contains": "json"},
                          "body.lineage": {"exists": false}}}]}
            """
        try await playing(script) { server, port in
            _ = await MockConnection.exchange(port, "GET /deltas?since=2")
            #expect(server.verdict.complaints == ["step 1 was used 0 of 1 times."])
            _ = await MockConnection.exchange(port, "GET /deltas?since=3&client=a&rows=1")
            #expect(server.verdict.isGood)
            let body = #"{"maxRevision": 5, "lineage": "x", "changeSets": []}"#
            _ = await MockConnection.exchange(port, "POST /sync", body: body)
            #expect(
                server.verdict.complaints == [
                    "push, request 3: body.changeSets.count was 0, expected at least 1.",
                    "push, request 3: body.maxRevision was 5, expected 4.",
                    "push, request 3: body.lineage was \"x\", expected nothing.",
                ])
            let lines = await MockConnection.exchange(port, "GET /mock/requests")
            let line =
                #"{"number":3,"method":"POST","path":"/sync","query":{},"step":"push","body":"#
                + #"{"maxRevision":5,"lineage":"x","changeSets":[]}}"#
            #expect(lines.contains(line))
        }
    }
}
