@main
enum MartletCommand {
    static func main() {}
}
