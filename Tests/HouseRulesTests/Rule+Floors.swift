extension Rule {
    static let floors = Rule(name: "a folder names no type of a folder above") { file in
        guard file.isSwift, let target = file.target, let floors = try? Floors.own.get()[target]
        else { return [] }
        return floors.violations(in: file)
    }
}
