//! The texts: sentences from templates about the memory's own topic and subtopic.
//!
//! Names with letters outside ASCII and quoted speech are there on purpose: files have to carry
//! them. Two memories may say the same in the same words and still differ in their embeddings; a
//! repeated memory has both alike.

use crate::Kind;
use crate::random::Draws;
use crate::space::Subject;

pub const TOPICS: usize = 16;
pub const SUBTOPICS: usize = 6;

struct Topic {
    places: [&'static str; 2],
    doing: [&'static str; SUBTOPICS],
}

const NAMES: [&str; 20] = [
    "Ada", "Bruno", "Chloë", "Dmitri", "Esra", "Farid", "Greta", "Hiro", "Inés", "Jonas", "Kemi",
    "Łukasz", "Mara", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Søren", "Tomás",
];

const WHEN: [&str; 6] = [
    "this afternoon",
    "tomorrow morning",
    "after lunch",
    "before sunset",
    "on Friday",
    "next weekend",
];

/// A sentence of the given kind.
pub fn sentence(kind: Kind, subject: Subject, mut draws: Draws) -> String {
    let topic = &CATALOGUE[usize::from(subject.topic)];
    let doing = topic.doing[usize::from(subject.subtopic)];
    let place = topic.places[draws.below(2)];
    let when = WHEN[draws.below(WHEN.len())];
    let name = draws.below(NAMES.len());
    let other = NAMES[(name + 1 + draws.below(NAMES.len() - 1)) % NAMES.len()];
    let name = NAMES[name];
    match (kind, draws.below(4)) {
        (Kind::Observation, 0) => format!("{name} is {doing} {place}."),
        (Kind::Observation, 1) => format!("{name} was seen {doing} {place}."),
        (Kind::Observation, 2) => format!("{name} and {other} are {doing} together {place}."),
        (Kind::Observation, _) => format!("{name} stopped {doing} when {other} arrived {place}."),
        (Kind::Chat, 0) => format!("{name} told {other} about {doing} {place}."),
        (Kind::Chat, 1) => format!("{name} asked {other}: \"Have you tried {doing}?\""),
        (Kind::Chat, 2) => {
            format!("\"I have been {doing} again\", {name} said to {other} {place}.")
        }
        (Kind::Chat, _) => format!("{name} and {other} disagreed about {doing}."),
        (Kind::Plan, 0) => format!("{name} plans on {doing} {place} {when}."),
        (Kind::Plan, 1) => format!("{name} will be {doing} with {other} {when}."),
        (Kind::Plan, 2) => format!("{name} wants to spend an hour {doing} {when}."),
        (Kind::Plan, _) => format!("{name} promised {other} to help with {doing} {when}."),
        (Kind::Reflection, 0) => format!("{name} cares a great deal about {doing}."),
        (Kind::Reflection, 1) => format!("{name} and {other} have grown closer over {doing}."),
        (Kind::Reflection, 2) => format!("For {name}, {doing} is a way to rest."),
        (Kind::Reflection, _) => format!("{name} would rather be {doing} than anything else."),
    }
}

/// A question about the subject.
pub fn question(subject: Subject, mut draws: Draws) -> String {
    let doing = CATALOGUE[usize::from(subject.topic)].doing[usize::from(subject.subtopic)];
    let name = NAMES[draws.below(NAMES.len())];
    match draws.below(3) {
        0 => format!("What does {name} think about {doing}?"),
        1 => format!("Who has been {doing}?"),
        _ => format!("When was {name} last {doing}?"),
    }
}

#[rustfmt::skip]
const CATALOGUE: [Topic; TOPICS] = [
    Topic { places: ["in the kitchen", "at the bakery"],
        doing: ["kneading dough", "baking bread", "cooking soup", "slicing onions", "tasting a sauce", "washing the dishes"] },
    Topic { places: ["at the café", "on the terrace"],
        doing: ["drinking coffee", "serving tea", "wiping the tables", "roasting beans", "writing the menu", "counting the tips"] },
    Topic { places: ["at the library", "in the reading room"],
        doing: ["reading a novel", "shelving books", "studying history", "returning a dictionary", "copying a map", "whispering about a poem"] },
    Topic { places: ["in the garden", "by the greenhouse"],
        doing: ["watering the seedlings", "pruning roses", "picking tomatoes", "turning the compost", "planting bulbs", "pulling weeds"] },
    Topic { places: ["at the town hall", "on the square"],
        doing: ["campaigning for mayor", "counting votes", "debating the budget", "signing a petition", "chairing the meeting", "handing out leaflets"] },
    Topic { places: ["at the clinic", "in the waiting room"],
        doing: ["visiting the doctor", "measuring blood pressure", "changing a bandage", "picking up a prescription", "comforting a patient", "filing the records"] },
    Topic { places: ["in the studio", "at the gallery"],
        doing: ["mixing paint", "sketching a portrait", "stretching a canvas", "hanging a picture", "glazing a vase", "cleaning brushes"] },
    Topic { places: ["in the rehearsal room", "on the stage"],
        doing: ["tuning a violin", "practising scales", "writing a song", "singing in the choir", "carrying the drums", "listening to a record"] },
    Topic { places: ["at the school", "in the classroom"],
        doing: ["marking essays", "teaching fractions", "writing on the blackboard", "preparing an exam", "helping a pupil", "organising the trip"] },
    Topic { places: ["in the laboratory", "at the observatory"],
        doing: ["measuring a sample", "calibrating the telescope", "plotting results", "writing a paper", "repairing a pump", "labelling slides"] },
    Topic { places: ["at the workshop", "in the garage"],
        doing: ["sawing planks", "sanding a chair", "fixing a bicycle", "sharpening chisels", "welding a frame", "looking for a screw"] },
    Topic { places: ["at the harbour", "on the pier"],
        doing: ["mending nets", "painting the boat", "unloading crates", "watching the tide", "fishing for mackerel", "coiling rope"] },
    Topic { places: ["in the park", "by the pond"],
        doing: ["walking the dog", "feeding ducks", "playing chess", "flying a kite", "jogging around the lake", "resting on a bench"] },
    Topic { places: ["at the market", "in the grocery shop"],
        doing: ["buying apples", "weighing cheese", "haggling over a lamp", "stacking tins", "carrying bags", "paying with coins"] },
    Topic { places: ["in the bedroom", "at home"],
        doing: ["winding the clock", "making the bed", "folding laundry", "brushing teeth", "packing a suitcase", "keeping a diary"] },
    Topic { places: ["at the station", "on the night train"],
        doing: ["waiting for a train", "buying a ticket", "reading the timetable", "saying goodbye", "looking for a seat", "losing an umbrella"] },
];
