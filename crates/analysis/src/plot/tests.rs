//! Tests of the drawn lines and of the file.

use super::*;

fn plot(series: Vec<Series>) -> Plot {
    Plot {
        title: "Error rate <of> a & \"b\" 'c'\u{1b}[31m".to_owned(),
        labels: ["items & more", "error rate"],
        least: Some(1e-12),
        series,
    }
}

fn series(name: &str, points: &[(f64, f64)]) -> Series {
    Series { name: name.to_owned(), colour: 0, is_thin: false, points: points.to_vec() }
}

fn svg(plot: &Plot) -> String {
    Plot::svg(std::slice::from_ref(plot)).unwrap()
}

/// Returns the points of each drawn line.
fn lines(svg: &str) -> Vec<Vec<(i32, i32)>> {
    let width = "stroke-width=\"2\" points=\"";
    let drawn = svg.split(width).skip(1).map(|rest| rest.split('"').next().unwrap());
    let point = |point: &str| {
        let (x, y) = point.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    drawn.map(|points| points.split_whitespace().map(point).collect()).collect()
}

/// Checks that tags are closed in order, and that the text contains only valid XML.
fn check_xml(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
        assert!(!text.contains('"') && !tag.contains('&'), "{part}");
        for entity in text.split('&').skip(1) {
            let name = entity.split(';').next().unwrap();
            assert!(["lt", "gt", "amp", "quot", "apos"].contains(&name), "{entity}");
        }
    }
    assert!(open.is_empty() && !svg.contains(|c: char| c.is_control() && c != '\n'));
}

#[test]
fn each_series_is_a_line_and_an_entry_of_the_legend() {
    let plot = plot(vec![
        series("one", &[(0.0, 1e-8), (50.0, 1e-6), (100.0, 1e-4)]),
        series("two <&>", &[(0.0, 0.0), (50.0, 0.0), (100.0, 1e-6)]),
        series("nought", &[(0.0, 0.0)]),
        series("none", &[]),
        series("little", &[(0.0, 0.0), (1.0, 1e-30)]),
    ]);
    let svg = svg(&plot);
    check_xml(&svg);
    let [one, two] = &lines(&svg)[..] else { panic!("two lines: {svg}") };
    // The second point of line one is 1e-6. On the logarithmic axis, it is equally far from 1e-8
    // and 1e-4.
    assert_eq!((one.len(), two.len()), (3, 1));
    assert!((2 * one[1].1 - one[0].1 - one[2].1).abs() <= 1, "{one:?}");
    assert!(one[0].0 < one[1].0 && one[0].1 > one[1].1, "{one:?}");
    assert_eq!(two[0], (one[2].0, one[1].1));
    for text in [
        "one\n",
        "two &lt;&amp;&gt;\n",
        "nought: 0, not drawn\n",
        "none: no points\n",
        "little: too small to draw\n",
    ] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    for text in ["a &amp; &quot;b&quot; &apos;c&apos;\u{fffd}[31m\n", "1e-6\n", "items &amp; more"]
    {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert_eq!(self::svg(&plot), svg, "twice the same");
}

#[test]
fn plots_stand_one_below_the_other() {
    let one = plot(vec![series("one", &[(0.0, 1e-8), (100.0, 1e-4)])]);
    let both = Plot::svg(&[one.clone(), one.clone()]).unwrap();
    check_xml(&both);
    let [upper, lower] = &lines(&both)[..] else { panic!("two lines: {both}") };
    assert_eq!(std::slice::from_ref(upper), &lines(&svg(&one))[..]);
    let below = |(x, y): (i32, i32)| (x, y + 540);
    assert_eq!(upper.iter().copied().map(below).collect::<Vec<_>>(), *lower);
}

#[test]
fn an_axis_shows_all_points_even_those_that_are_too_low_to_draw() {
    let low = plot(vec![series("low", &[(0.0, 0.0), (90_000.0, 0.0)])]);
    assert!(svg(&low).contains("80k\n"), "{}", svg(&low));
}

#[test]
fn long_texts_are_cut() {
    let mut long = plot(vec![series(&"n".repeat(1000), &[(1.0, 0.5)])]);
    long.title = "ü".repeat(1000);
    let svg = svg(&long);
    for (letter, most) in [("n", 40), ("ü", 110)] {
        let cut = format!(">\n{}…\n", letter.repeat(most - 1));
        assert!(svg.contains(&cut), "{letter}: {svg}");
    }
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.svg");
    let good = [plot(vec![series("one", &[(1.0, 0.5)])])];
    std::fs::write(&path, "before").unwrap();
    Plot::write(&good, &path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), Plot::svg(&good).unwrap());
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 1, "nothing is left beside it");

    Plot::check(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), Plot::svg(&good).unwrap(), "only asked");
    for (place, words) in [("", "is not a file"), ("no/such/plot.svg", "No such file")] {
        let refused = Plot::check(&folder.path().join(place)).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }

    let refused = Plot::write(&good, folder.path()).unwrap_err();
    assert!(refused.to_string().contains("is not a file"), "{refused}");
    let refused = Plot::write(&good, &folder.path().join("no/such/plot.svg")).unwrap_err();
    assert!(refused.to_string().contains("cannot be written: No such file"), "{refused}");
    assert_eq!(names(), 1);
}
