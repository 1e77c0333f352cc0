//! Writes JSON for speedscope: the frames once, and a profile for each event.
//!
//! Profiles are of the kind `evented`: frames open and close at running totals, so that the file grows
//! with the number of nodes, not with the length of their paths.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::options::WriteOptions;
use crate::profile::{EventId, NodeId, Tree};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub(super) fn write(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"$schema\":{},\"exporter\":\"perfprop\",\"shared\":{{\"frames\":[", json!(SCHEMA))?;
    for (index, frame) in tree.frames().enumerate() {
        let mut value = json!({ "name": frame.name });
        if !frame.file.is_empty() || !frame.module.is_empty() {
            // A frame has one place in this format; the source is the better one.
            value["file"] = Value::from(if frame.file.is_empty() { frame.module } else { frame.file });
        }
        if let Some(line) = frame.line {
            value["line"] = line.get().into();
        }
        write!(out, "{}{value}", if index > 0 { ",\n" } else { "\n" })?;
    }
    write!(out, "]}},\"profiles\":[")?;
    let events: Vec<EventId> = tree.event_ids().collect();
    for (index, &event) in events.iter().enumerate() {
        write!(out, "{}", if index > 0 { ",\n" } else { "\n" })?;
        profile(tree, event, options, out)?;
    }
    let shown = options.event(tree).map_or(0, EventId::index);
    writeln!(out, "],\"activeProfileIndex\":{shown}}}")
}

fn profile(tree: &Tree, event: EventId, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    let unit = match options.unit.name(tree, event) {
        unit @ ("nanoseconds" | "microseconds" | "milliseconds" | "seconds" | "bytes") => unit,
        _ => "none",
    };
    let name = &tree.event_of(event).name;
    write!(out, "{{\"type\":\"evented\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":0,\"events\":[", json!(name))?;
    let inclusive = tree.inclusive(event);
    let mut at = 0_u64;
    let mut open: Vec<(NodeId, usize)> = Vec::new();
    let mut comma = "\n";
    for node in tree.walk().filter(|node| inclusive[node.id().index()] != Default::default()) {
        // The root is no frame, but for what was counted on itself.
        let own = options.unit.of(&node, event);
        if node.depth() == 0 && own == 0 {
            continue;
        }
        close(tree, &mut open, node.depth(), at, &mut comma, out)?;
        write!(out, "{comma}{{\"type\":\"O\",\"frame\":{},\"at\":{at}}}", node.frame_id().index())?;
        comma = ",\n";
        open.push((node.id(), node.depth()));
        at = at.saturating_add(own);
        if node.depth() == 0 {
            close(tree, &mut open, 0, at, &mut comma, out)?;
        }
    }
    close(tree, &mut open, 0, at, &mut comma, out)?;
    write!(out, "],\"endValue\":{at}}}")
}

/// Closes the frames that are no deeper than the next one.
fn close(
    tree: &Tree,
    open: &mut Vec<(NodeId, usize)>,
    depth: usize,
    at: u64,
    comma: &mut &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    while let Some((node, _)) = open.pop_if(|(_, open_depth)| *open_depth >= depth) {
        write!(out, "{comma}{{\"type\":\"C\",\"frame\":{},\"at\":{at}}}", tree.node(node).frame_id().index())?;
        *comma = ",\n";
    }
    Ok(())
}
