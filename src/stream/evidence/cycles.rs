//! Nodes of a graph that lie on a cycle.

/// Which of `nodes` nodes reach themselves over at least one other: those of strongly connected components of two
/// nodes or more, which Tarjan's algorithm finds. Without recursion: chains may be long.
pub(super) fn on_cycles<I: Iterator<Item = usize>>(
    nodes: usize,
    successors: impl Fn(usize) -> I,
) -> Vec<bool> {
    const UNSEEN: usize = usize::MAX;
    let mut on_cycle = vec![false; nodes];
    // The order in which nodes were found, and the earliest found that each reaches. A node whose component is known
    // reaches none: its number is the number of nodes.
    let mut reaches = vec![UNSEEN; nodes];
    let mut found = 0;
    let mut component = Vec::new();
    let mut path: Vec<(usize, usize, I)> = Vec::new();
    for root in 0..nodes {
        if reaches[root] != UNSEEN {
            continue;
        }
        path.push((root, found, successors(root)));
        reaches[root] = found;
        found += 1;
        component.push(root);
        while let Some((node, number, rest)) = path.last_mut() {
            let (node, number) = (*node, *number);
            if let Some(next) = rest.next() {
                if reaches[next] == UNSEEN {
                    path.push((next, found, successors(next)));
                    reaches[next] = found;
                    found += 1;
                    component.push(next);
                } else {
                    reaches[node] = reaches[node].min(reaches[next]);
                }
                continue;
            }
            path.pop();
            if reaches[node] == number {
                let start = component.iter().rposition(|&member| member == node);
                let members = component.split_off(start.expect("it was pushed when it was found"));
                for &member in &members {
                    on_cycle[member] = members.len() > 1;
                    reaches[member] = nodes;
                }
            }
            if let Some((before, _, _)) = path.last() {
                reaches[*before] = reaches[*before].min(reaches[node]);
            }
        }
    }
    on_cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: a node is on a cycle if it is among all that it reaches over another.
    fn by_definition(edges: &[Vec<usize>]) -> Vec<bool> {
        let reached = |from: usize| {
            let mut reached = vec![false; edges.len()];
            let mut ahead = vec![from];
            while let Some(node) = ahead.pop() {
                for &next in edges[node].iter().filter(|&&next| next != node) {
                    if !std::mem::replace(&mut reached[next], true) {
                        ahead.push(next);
                    }
                }
            }
            reached[from]
        };
        (0..edges.len()).map(reached).collect()
    }

    #[test]
    fn all_graphs_of_four_nodes_and_many_of_more() {
        let check = |nodes: usize, has: &dyn Fn(usize) -> bool| {
            let row = |from| {
                (0..nodes)
                    .filter(move |to| has(from * nodes + to))
                    .collect()
            };
            let edges: Vec<Vec<usize>> = (0..nodes).map(row).collect();
            let found = on_cycles(nodes, |node| edges[node].iter().copied());
            assert_eq!(found, by_definition(&edges), "{edges:?}");
        };
        for graph in 0_u32..1 << 16 {
            check(4, &|bit| graph >> bit & 1 == 1);
        }
        let mut state = 1_u64;
        for nodes in 5..40 {
            for _ in 0..200 {
                let mut bits = vec![false; nodes * nodes];
                for bit in &mut bits {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    *bit = ((state >> 33) as usize).is_multiple_of(nodes);
                }
                check(nodes, &|bit| bits[bit]);
            }
        }
    }

    #[test]
    fn a_chain_of_a_million_needs_no_stack() {
        let n = 1_000_000;
        let line = on_cycles(n, |node| (node + 1 < n).then_some(node + 1).into_iter());
        assert!(!line.contains(&true));
        let ring = on_cycles(n, |node| std::iter::once((node + 1) % n));
        assert!(!ring.contains(&false));
    }
}
