internal import MartletModel

/// A class of principals who see the same: what is made for one may go to all of it.
public struct PermissionClass: Hashable, Sendable {
    /// Letters a–z and digits, for names of folders.
    public let name: String
}

extension VisibilityFilter {
    /// The class a principal is of.
    public func permissionClass(of principal: Principal) -> PermissionClass { Self.everybody }

    /// The classes for which something may be made before anybody asks.
    public var permissionClasses: [PermissionClass] { [Self.everybody] }

    /// An SQL expression for the records of a type that a class may see; nil where it sees all.
    package func condition(of type: String, for permissions: PermissionClass) -> String? { nil }

    private static let everybody = PermissionClass(name: "everybody")
}
