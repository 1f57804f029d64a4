//! What a run stores and touches: all of it or nothing.

use super::*;

#[test]
fn insights_of_all_questions_are_stored_with_evidence_depth_rating_and_origin() {
    let (_dir, path, store) = store();
    let settings = Settings {
        questions: 2,
        ..settings()
    };
    let reflected = run(
        &store,
        settings,
        &[
            "Here are two:\n1. What does Klaus do?\n2. Who plays?\n3. Why?",
            "1. Klaus studies cities (because of 2, 1)\n2. Klaus is busy (because of 1)",
            "- Maria likes chess (3)",
            "8",
            "7",
            "3",
        ],
    )
    .unwrap();
    assert_eq!(reflected.ids, 4..7);
    assert_eq!(reflected.questions, ["What does Klaus do?", "Who plays?"]);
    let look = |store: &Store| {
        let expected = [
            ("Klaus studies cities".to_owned(), vec![1, 0], 1),
            ("Klaus is busy".to_owned(), vec![0], 1),
            ("Maria likes chess".to_owned(), vec![2], 1),
        ];
        assert_eq!(stored(store, 4), expected);
        let snapshot = store.snapshot();
        assert_eq!(
            [4, 5, 6].map(|row| snapshot.importance(row)),
            [8.0, 7.0, 3.0]
        );
        for row in 4..7 {
            assert_eq!(snapshot.created(row), NOW);
            let text = snapshot.text(row).unwrap();
            assert_eq!(
                snapshot.embedding(row),
                Some(embedder().embedding(text).unwrap())
            );
        }
        let origin = |question: &str| Origin {
            question: question.into(),
            support: Support::Unchecked,
        };
        let (klaus, who) = (origin("What does Klaus do?"), origin("Who plays?"));
        assert_eq!(origins(store, 4), [klaus.clone(), klaus, who]);
        let graph = Graph::of(&snapshot).unwrap();
        assert_eq!(graph.integrity(&Rules::default()).unwrap().findings, []);
    };
    look(&store);
    let Verdict::Questions(questions) = &reflected.attempts[0].verdict else {
        panic!("{:?}", reflected.attempts[0]);
    };
    assert_eq!(questions.left_out, ["Why?"]);
    assert_eq!(reflected.attempts.len(), 6);
    assert!(reflected.attempts.iter().all(|attempt| attempt.is_taken));
    drop(store);
    look(&Store::open(&path).unwrap());
}

#[test]
fn what_is_retrieved_and_touched_is_what_a_sequential_batch_retrieves_and_touches() {
    let (_a, _, ours) = store();
    let (_b, _, theirs) = store();
    let preset = Preset {
        k: 2,
        ..Preset::paper()
    };
    let settings = Settings {
        questions: 3,
        agent: Agent(7),
        ..Settings::new(preset)
    };
    let asked = [
        "What about cities?",
        "Who plays chess?",
        "Is there coffee about cities?",
    ];
    let mut run = Reflect::new(&ours, settings, None, NOW).unwrap();
    run.replied(&asked.join("\n")).unwrap();
    let embeddings: Vec<_> = asked
        .iter()
        .map(|text| embedder().embedding(text).unwrap())
        .collect();
    run.embedded(embeddings.clone()).unwrap();
    // What comes meanwhile is not seen.
    let late = add(
        &ours,
        vec![observed("Klaus writes about cities and coffee and chess")],
    );
    assert_eq!(contents(&ours.snapshot()).lines().count(), 6);
    for _ in asked {
        run.replied("1. An insight (because of 2)").unwrap();
        let Need::Embed { texts, .. } = run.needs() else {
            panic!("embeddings come before the next question");
        };
        assert_eq!(texts, ["An insight"]);
        run.embedded(vec![embedder().embedding("An insight").unwrap()])
            .unwrap();
    }
    (0..3).for_each(|_| run.rated("5").unwrap());
    let last_access = |store: &Store| {
        let snapshot = store.snapshot();
        (0..4)
            .map(|row| snapshot.last_access(Agent(7), row))
            .collect::<Vec<_>>()
    };
    let untouched = last_access(&ours);
    let reflected = run.append(&ours).unwrap();
    assert_ne!(last_access(&ours), untouched);
    let filter = Filter {
        unexpired: true,
        ..Filter::PAST
    };
    let asks: Vec<_> = embeddings
        .iter()
        .map(|embedding| {
            Retrieve::new(Ask {
                agent: Agent(7),
                filter: &filter,
                ..Ask::new(embedding, NOW, &preset)
            })
        })
        .collect();
    let order = Order::Sequential;
    let mut workspace = memorank::scoring::Workspace::new();
    let all = retrieve_many(&theirs, &asks, order, memorank::Par::Serial, &mut workspace).unwrap();
    for (ours, theirs) in reflected.retrieved.iter().zip(&all) {
        assert_eq!(ours.memories, theirs.memories);
        assert_eq!(ours.ranges, theirs.ranges);
        assert!(ours.touch.is_ok() && ours.sequence.is_some());
    }
    assert_eq!(last_access(&ours), last_access(&theirs));
    // The records say what was seen: not what came before they were written.
    for retrieved in &reflected.retrieved {
        let (before, touched) = ours.before(retrieved.sequence.unwrap()).unwrap();
        assert!(before.row_of_id(late).is_none());
        assert_eq!(touched.agent, Agent(7));
    }
}

#[test]
fn nested_reflection() {
    let (_dir, _, store) = store();
    for depth in 1..5 {
        let last = store.snapshot().next_id();
        let insight = format!("1. Insight {depth} (because of 1, {last})");
        let reflected = run(&store, settings(), &[QUESTION, &insight, "5"]).unwrap();
        let expected = match depth {
            1 => vec![0, 3],
            _ => vec![0, last - 1],
        };
        let expected = [(format!("Insight {depth}"), expected, depth)];
        assert_eq!(stored(&store, reflected.ids.start), expected);
    }
    let graph = Graph::of(&store.snapshot()).unwrap();
    assert_eq!(graph.integrity(&Rules::default()).unwrap().findings, []);
}

#[test]
fn repeated_insight_text_is_two_memories() {
    let (_dir, _, store) = store();
    let twice = "1. Klaus reads (because of 1)\n2. Klaus reads (because of 2)";
    let reflected = run(&store, settings(), &[QUESTION, twice, "5", "5"]).unwrap();
    assert_eq!(reflected.ids, 4..6);
    let texts = stored(&store, 4);
    assert_eq!(texts[0], ("Klaus reads".to_owned(), vec![0], 1));
    assert_eq!(texts[1], ("Klaus reads".to_owned(), vec![1], 1));
}

#[test]
fn evidence_that_was_deleted_or_corrected_meanwhile_is_told_and_nothing_is_stored() {
    let (_dir, _, deleted) = store();
    let mut run = ready(&deleted);
    deleted.delete(&[1]).unwrap();
    let before = contents(&deleted.snapshot());
    let error = run.append(&deleted).unwrap_err();
    assert!(
        matches!(error, ReflectFinishError::Deleted { insight: 0, id: 1 }),
        "{error}"
    );
    assert_eq!(contents(&deleted.snapshot()), before);

    let (_dir, _, corrected) = store();
    let mut run = ready(&corrected);
    let correction = |created| Draft {
        supersedes: Some(1),
        created,
        ..observed("Klaus takes notes about villages")
    };
    add(&corrected, vec![correction(NOW)]);
    let before = contents(&corrected.snapshot());
    let error = run.append(&corrected).unwrap_err();
    let told = matches!(
        error,
        ReflectFinishError::Superseded {
            insight: 0,
            id: 1,
            by: 4
        }
    );
    assert!(told, "{error}");
    assert_eq!(contents(&corrected.snapshot()), before);

    // What is corrected only later was right at the moment of reflecting.
    let (_dir, _, later) = store();
    let mut run = ready(&later);
    add(&later, vec![correction(NOW + 1)]);
    assert_eq!(run.append(&later).unwrap().ids, 5..7);
}

#[test]
fn all_insights_are_there_or_none_wherever_the_journal_ends() {
    let (dir, path, store) = store();
    store.checkpoint().unwrap();
    let before = contents(&store.snapshot());
    let journal = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        let mut segments = files.keys().filter(|name| name.starts_with("journal."));
        segments.next_back().unwrap().clone()
    };
    let start = bytes_of(&path);
    let start = start[&journal(&start)].len();
    ready(&store).append(&store).unwrap();
    let files = bytes_of(&path);
    let name = journal(&files);
    let mut met = [0; 2];
    for end in start..=files[&name].len() {
        let cut = dir.path().join(format!("cut-{end}"));
        std::fs::create_dir(&cut).unwrap();
        for (file, bytes) in &files {
            let bytes = if *file == name { &bytes[..end] } else { bytes };
            std::fs::write(cut.join(file), bytes).unwrap();
        }
        let left = Store::open_read_only(&cut).unwrap().snapshot();
        match left.len() {
            4 => assert_eq!(contents(&left), before),
            6 => assert_eq!(
                left.evidence(4).unwrap(),
                [Reference::Id(0), Reference::Id(1)]
            ),
            other => panic!("{other} memories of 4 and 2"),
        }
        met[usize::from(left.len() == 6)] += 1;
        std::fs::remove_dir_all(&cut).unwrap();
    }
    assert!(met[0] > 100 && met[1] > 1, "{met:?}");
}

#[test]
fn a_run_can_cross_threads() {
    fn is_send<T: Send>(run: T) -> T {
        run
    }
    let (_dir, _, store) = store();
    let mut run = is_send(ready(&store));
    let store = &store;
    std::thread::scope(|scope| {
        let stored = scope.spawn(move || run.append(store).unwrap().ids);
        assert_eq!(stored.join().unwrap(), 4..6);
    });
}

#[test]
fn a_clone_of_a_run_goes_its_own_way() {
    let (_dir, _, store) = store();
    let mut run = Reflect::new(&store, settings(), None, NOW).unwrap();
    run.replied(QUESTION).unwrap();
    run.embedded(vec![vec![1.0; DIM]]).unwrap();
    let mut other = run.clone();
    assert_eq!(format!("{other:?}"), format!("{run:?}"));
    for (run, text) in [(&mut run, "Klaus reads"), (&mut other, "Klaus rests")] {
        run.replied(&format!("1. {text} (because of 1)")).unwrap();
        run.not_embedded().unwrap();
        run.rated("5").unwrap();
        let reflected = run.append(&store).unwrap();
        reflected.retrieved[0].touch.as_ref().unwrap();
        assert_eq!(stored(&store, reflected.ids.start)[0].0, text);
    }
}

#[test]
fn another_store_is_refused_whatever_it_holds() {
    let (_dir, _, store) = store();
    // Touches put it ahead of the other, which has the same memories.
    for later in 0..3 {
        store.touch(Agent::OWN, &[0], NOW + later).unwrap();
    }
    let mut run = ready(&store);
    let (_dir, _, behind) = self::store();
    let (_dir, _, empty) = empty();
    let (_dir, _, different) = self::empty();
    for text in ["a", "b", "c", "d", "e"] {
        add(&different, vec![observed(text)]);
    }
    for other in [&behind, &empty, &different] {
        let before = contents(&other.snapshot());
        let error = run.append(other).unwrap_err();
        assert!(matches!(error, ReflectFinishError::OtherStore), "{error}");
        assert_eq!(contents(&other.snapshot()), before);
    }
    assert_eq!(run.append(&store).unwrap().ids, 4..6);
}
