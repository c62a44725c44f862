/// The words from which the generated records are made.
enum Vocabulary {
    static let firstNames = [
        "Aisha", "Alba", "Amara", "Anton", "Aoife", "Ayumi", "Beatriz", "Bram", "Callum", "Carmen",
        "Chidi", "Dario", "Deniz", "Elif", "Emil", "Esme", "Farah", "Finn", "Freya", "Giulia",
        "Hana", "Hugo", "Ibrahim", "Ines", "Isla", "Ivo", "Jakub", "Jonas", "Kaito", "Katya",
        "Lars", "Leila", "Liam", "Lucía", "Maeve", "Malik", "Mateo", "Mila", "Nadia", "Nils",
        "Noor", "Olga", "Omar", "Otto", "Paula", "Pavel", "Quinn", "Rania", "Ravi", "Rosa",
        "Sami", "Sanne", "Selma", "Søren", "Tara", "Thiago", "Tomás", "Uma", "Vera", "Viktor",
        "Wanjiru", "Yara", "Yusuf", "Zoë",
    ]
    static let lastNames = [
        "Adeyemi", "Almeida", "Andersson", "Bakker", "Bauer", "Bianchi", "Byrne", "Castro",
        "Chen", "Costa", "Demir", "Dubois", "Eriksen", "Farouk", "Fernández", "Fischer", "Garcia",
        "Haddad", "Hansen", "Horvat", "Ito", "Ivanova", "Jansen", "Jensen", "Kaya", "Keller",
        "Kowalski", "Kumar", "Larsen", "Lefèvre", "Lindqvist", "Lopes", "MacLeod", "Marín",
        "Mensah", "Moreau", "Müller", "Nakamura", "Ncube", "Nguyen", "Nowak", "O'Brien", "Okafor",
        "Olsen", "Patel", "Pereira", "Petrov", "Quist", "Reyes", "Rossi", "Sato", "Schmidt",
        "Silva", "Singh", "Sørensen", "Tanaka", "Torres", "Ueda", "Vargas", "Vos", "Walsh",
        "Weber", "Yilmaz", "Zhang",
    ]
    static let places = [
        "Ashford", "Birchwood", "Brookside", "Cedar Hill", "Clearwater", "Dunmore", "Eastgate",
        "Elmfield", "Fairview", "Glenmoor", "Greenbank", "Harbour", "Highfield", "Kingsmead",
        "Lakeside", "Larkhill", "Millbrook", "Northgate", "Oakridge", "Pinewood", "Quarry Lane",
        "Riverside", "Rosedale", "Sandford", "Southbank", "Stonebridge", "Summerhill", "Thornbury",
        "Upton", "Valley", "Westfield", "Willowdale",
    ]
    static let mascots = [
        "Falcons", "Martlets", "Otters", "Rangers", "Rovers", "Swifts", "Tigers", "United",
        "Wanderers", "Wolves", "Herons", "Badgers", "Comets", "Harriers", "Kestrels", "Lynx",
    ]
    static let surfaces = ["grass", "hybrid", "artificial", "indoor", "clay"]
    static let ageGroups = ["U8", "U9", "U10", "U11", "U12", "U13", "U14", "U15", "U16", "U18"]
    static let positions = ["goalkeeper", "defender", "midfielder", "winger", "forward"]
    static let roles = ["head coach", "assistant coach", "physiotherapist", "manager", "analyst"]
    static let screens = [
        "Movement screen", "Sprint test", "Endurance run", "Balance check", "Jump profile",
        "Agility circuit", "Return to play", "Flexibility check", "Strength profile",
        "Pre-season medical",
    ]
    static let items = [
        ("10 m sprint", "s"), ("30 m sprint", "s"), ("Standing jump", "cm"),
        ("Deep squat", "points"),
        ("Hurdle step, left", "points"), ("Hurdle step, right", "points"), ("Resting pulse", "bpm"),
        ("Single-leg balance", "s"), ("Sit and reach", "cm"), ("Shuttle run", "level"),
        ("Grip, left", "kg"), ("Grip, right", "kg"), ("T-test", "s"), ("Plank", "s"),
    ]
    static let sessionKinds = ["training", "training", "training", "match", "recovery", "meeting"]
    static let attendance = [
        "present", "present", "present", "present", "late", "excused", "absent",
    ]
    static let remarks = [
        "Good energy today.", "Left early with a sore ankle; ice and rest.",
        "Worked on the weaker foot, clear progress.", "Missed two sessions in a row: call home.",
        "Great leadership in the small-sided game.", "Needs more sleep before match days.",
        "Cleared to return to full training.", "Tried the “false nine” role, and liked it.",
        "Parents asked about the summer camp.", "Growth spurt: watch the knees.",
        "Scored from a set piece we practised on Tuesday.", "Quiet today; ask how school is going.",
    ]
}
