package import MartletModel
import MartletRules
import OpenSSLKit

/// The records that the policies show to some people.
///
/// A view has a part for each type: all its records, none, or those of a *type view*, which a table
/// of the storage lists. People for whom the policies of a type ask the same share its type view.
package struct View: Hashable, Sendable {
    /// The number by which devices name the view.
    package let number: Int64
    /// The part of each type, in the schema's order: a number of a type view, `whole` or `nothing`.
    package let parts: [Int64]
    /// The revision of the records from which it was computed.
    package let revision: Revision

    package init(number: Int64, parts: [Int64], revision: Revision) {
        self.number = number
        self.parts = parts
        self.revision = revision
    }

    /// The number of the view that shows everything.
    package static let everything: Int64 = 0
    /// The part that shows all records of its type.
    package static let whole: Int64 = 0
    /// The part that shows no record of its type.
    package static let nothing: Int64 = -1
}

/// The name of a type view. It stands for all that its members depend on besides the records.
package struct TypeViewKey: Hashable, Sendable {
    /// The position of the type in the schema.
    package let type: Int
    /// The SHA-256 of the rules, the type, and what the policies ask about the person and the day.
    package let digest: [UInt8]
}

/// A type view as the storage has it.
package struct TypeView: Hashable, Sendable {
    package let number: Int64
    /// The revision of the records from which its members were computed; nil if they never were, and
    /// `outdated` if they have to be computed from the start.
    package let revision: Revision?

    /// The revision of a type view whose members have to be computed from the start, because values have changed and
    /// no record has. It has the members that it had.
    package static let outdated: Revision = 0

    /// True if it was never computed, or has to be computed from the start.
    var isOutdated: Bool { revision.map { $0 == Self.outdated } ?? true }

    package init(number: Int64, revision: Revision?) {
        self.number = number
        self.revision = revision
    }
}

/// The views for which a difference is read: those whose records a device has, and the one that it
/// is to reach.
package struct ViewChange: Hashable, Sendable {
    /// The numbers of the views whose records the device may have. If there is one, it has all of
    /// them. Empty for a device that has nothing.
    package let held: [Int64]
    package let view: View
    /// The revisions since which the device's user was given type views, by their numbers.
    package let given: [Int64: Revision]
    /// The last revisions at which the device's user was given views, by their numbers.
    package let last: [Int64: Revision]

    package init(
        held: [Int64], view: View, given: [Int64: Revision], last: [Int64: Revision] = [:]
    ) {
        self.held = held
        self.view = view
        self.given = given
        self.last = last
    }

    /// True if the device's user sees everything, and the device has no other view's records.
    var showsAll: Bool { view.number == View.everything && !isMove }
    /// True if the device has records of another view.
    package var isMove: Bool { !held.isEmpty && held != [view.number] }
}

extension RowRights {
    /// The extent to which a person sees a type, as far as it can be told without its records.
    enum Extent: Hashable {
        case whole
        case nothing
        case judged(TypeViewKey)
    }

    /// Returns what the person sees of each type, in the schema's order.
    func extents() -> [Extent] {
        let rules = SHA256.digest(
            Array("\(schema.fingerprint) \(program.text)".utf8))
        return schema.types.indices.map { type in
            switch program.extent(of: type, for: viewer) {
            case .whole: .whole
            case .nothing: .nothing
            case .judged(let inputs):
                .judged(
                    TypeViewKey(
                        type: type,
                        digest: SHA256.digest(
                            rules + Array("\(schema.types[type].name)\0\(inputs)".utf8))))
            }
        }
    }

    /// Returns whether the person sees every record of every type.
    var showsEverything: Bool {
        schema.types.indices.allSatisfy { program.extent(of: $0, for: viewer) == .whole }
    }
}
