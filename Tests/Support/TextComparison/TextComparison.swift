internal import MartletTesting
package import Testing

/// Expects that a text is the one that stands in the test. If it is not, one issue shows the lines that
/// are missing, marked “-”, and those that are there in their place, marked “+”.
package func expectText(
    _ text: String, _ expected: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    guard text != expected else { return }
    let difference = WorldText(text).difference(from: WorldText(expected))
    Issue.record(
        Comment(rawValue: "The text differs:\n\(difference)"), sourceLocation: sourceLocation)
}
