use super::*;
use crate::bench::measure::sizes;
use crate::svg::WIDTH;

/// Figures of a made-up machine: GB/s on one thread, and ratios as given, over and over.
fn figures(memories: usize, threads: &[usize], roof: f64, ratios: &[f64]) -> Figures {
    let bytes = memories * 780;
    let of = |roof: f64, ratio: f64| Speed::new(bytes, bytes as f64 / 1e9 / (roof * ratio), roof);
    let mut ratios = ratios.iter().copied().cycle();
    let mut ratio = || ratios.next().unwrap();
    let roofline = threads.iter().map(|&threads| {
        let roof = roof * (threads as f64).sqrt();
        Roofline {
            threads,
            plain_read: of(roof, 1.0),
            cosine_scan: of(roof, ratio()),
            ranking: of(roof, ratio()),
        }
    });
    let roofline = roofline.collect();
    let growth = threads.iter().flat_map(|&threads| {
        let sizes = sizes(memories).into_iter();
        sizes.map(move |memories| (threads, memories))
    });
    let growth = growth.map(|(threads, memories)| Growth {
        threads,
        memories,
        plain_read: of(roof, 1.0),
        ranking: of(roof, ratio()),
    });
    Figures {
        roofline,
        growth: growth.collect(),
    }
}

fn drawn(name: &str, figures: &Figures) -> String {
    svg(&Chart {
        name,
        subject: "1,234,567 memories x 1536 f16",
        method: "preset paper, k 30, portable, medians of 10000 rounds",
        figures,
    })
}

/// All kinds of stores and machines.
fn many() -> Vec<Figures> {
    let mut many = Vec::new();
    for memories in [
        1,
        999,
        1_000,
        1_500,
        15_000,
        1_000_000,
        1_234_567,
        1_999_999,
        20_000_000,
        4_000_000_000,
    ] {
        for threads in [&[1][..], &[1, 2], &[1, 1024]] {
            for roof in [1e-3, 0.4, 31.0, 1234.0] {
                for ratios in [
                    &[0.97][..],
                    &[0.88, 0.9, 0.7, 0.95],
                    &[1e-9],
                    &[0.01, 12.0, 1.0],
                ] {
                    many.push(figures(memories, threads, roof, ratios));
                }
            }
        }
    }
    many
}

/// A text's left, right, top and bottom, roughly.
fn extent(line: &str) -> [f64; 4] {
    let attribute = |name: &str| {
        let rest = line.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0
    };
    let content = line.split_once('>').unwrap().1;
    let content = content.split_once("</text>").unwrap().0;
    let class = attribute("class");
    let size = match class {
        "name" => 17.0,
        "panel" => 13.0,
        _ if class.contains("value") => 11.0,
        _ => 12.0,
    };
    let width = 0.56 * size * content.chars().count() as f64;
    let x: f64 = attribute("x").parse().unwrap();
    let y: f64 = attribute("y").parse().unwrap();
    let left = match class {
        _ if class.contains("middle") => x - width / 2.0,
        _ if class.contains("end") => x - width,
        _ => x,
    };
    [left, left + width, y - 0.75 * size, y + 0.2 * size]
}

#[test]
fn no_two_labels_overlap_and_all_lie_inside() {
    for figures in many() {
        let svg = drawn("a store", &figures);
        let texts: Vec<&str> = svg.lines().filter(|l| l.starts_with("<text")).collect();
        for (i, a) in texts.iter().enumerate() {
            let [left, right, top, bottom] = extent(a);
            assert!(left >= 0.0 && right <= WIDTH && top >= 0.0, "{a}");
            for b in &texts[..i] {
                let other = extent(b);
                let beside = right <= other[0] || other[1] <= left;
                let above = bottom <= other[2] || other[3] <= top;
                assert!(beside || above, "{a}\n{b}\n{svg}");
            }
        }
    }
}

#[test]
fn every_number_is_one() {
    for figures in many() {
        let svg = drawn("a store", &figures);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!svg.contains("=\"-"), "nothing is drawn outside: {svg}");
    }
}

#[test]
fn it_tells_all_figures_in_words() {
    let figures = figures(10_000, &[1, 2], 30.0, &[0.5, 0.75]);
    let text = drawn("s", &figures);
    for told in [
        "1 thread, plain read 30.0 GB/s;",
        "1 thread, cosine scan 15.0 GB/s;",
        "2 threads, plain read 42.4 GB/s;",
        " 1 thread, 1,000 memories 0.50;",
        " 2 threads, 10,000 memories 0.75;",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert_eq!(text.matches("<polyline").count(), 2);
    assert_eq!(text.matches("<circle class=\"one mark\"").count(), 2 + 1);
}

#[test]
fn it_brings_both_schemes_and_nothing_else() {
    let text = drawn("s", &figures(10_000, &[1, 2], 30.0, &[0.5]));
    assert!(text.contains("@media (prefers-color-scheme: dark)"));
    let namespace = "http://www.w3.org/2000/svg";
    assert_eq!(text.matches("http").count(), 1, "{namespace} and no other");
    for needs in ["<script", "@import", "url(", "href"] {
        assert!(!text.contains(needs), "{needs}");
    }
}

#[test]
fn names_are_text_and_no_markup() {
    let figures = figures(1_000, &[1], 30.0, &[0.5]);
    let hostile = "</title><script>&\"'\u{1b}[31m\u{202e}\u{ffff}\n";
    let text = drawn(hostile, &figures);
    assert!(text.contains("&lt;/title&gt;&lt;script&gt;&amp;&quot;'"));
    let bad = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{ffff}".contains(c);
    assert!(!text.contains(bad) && !text.contains("<script"), "{text}");
}

#[test]
fn sizes_are_short() {
    for (n, told) in [
        (1, "1"),
        (999, "999"),
        (1_000, "1k"),
        (1_500, "1.5k"),
        (99_960, "100k"),
        (123_456, "123k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_234_567, "1.23M"),
        (20_000_000, "20M"),
        (4_000_000_000, "4G"),
    ] {
        assert_eq!(compact(n), told);
    }
}
