//! Writes JSON for speedscope: the frames once, and a profile for each event.
//!
//! Profiles are of the kind `evented`: frames open and close at running totals, so that the file grows
//! with the number of nodes, not with the length of their paths.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::options::WriteOptions;
use crate::profile::{EventId, FrameId, NodeId, NodeRef, Tree};

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
    let mut writer = EventedWriter { tree, out, open: Vec::new(), at: 0, comma: "\n" };
    for node in tree.walk().filter(|node| inclusive[node.id().index()] != Default::default()) {
        // The root is no frame, but for what was counted on itself.
        let own = options.unit.of(&node, event);
        if node.depth() == 0 && own == 0 {
            continue;
        }
        writer.open(&node, own)?;
        if node.depth() == 0 {
            writer.close(0)?;
        }
    }
    writer.close(0)?;
    let at = writer.at;
    write!(out, "],\"endValue\":{at}}}")
}

/// Writes the events of a profile: frames that open and close.
struct EventedWriter<'a> {
    tree: &'a Tree,
    out: &'a mut dyn Write,
    /// The nodes that are open, with their depths.
    open: Vec<(NodeId, usize)>,
    /// The running total.
    at: u64,
    /// What stands before the next event.
    comma: &'static str,
}

impl EventedWriter<'_> {
    /// Opens a frame in which so much was counted, after those are closed that aren't around it.
    fn open(&mut self, node: &NodeRef<'_>, own: u64) -> io::Result<()> {
        self.close(node.depth())?;
        self.event('O', node.frame_id())?;
        self.open.push((node.id(), node.depth()));
        self.at = self.at.saturating_add(own);
        Ok(())
    }

    /// Closes the frames that are at this depth or below it.
    fn close(&mut self, depth: usize) -> io::Result<()> {
        while let Some((node, _)) = self.open.pop_if(|(_, open_depth)| *open_depth >= depth) {
            self.event('C', self.tree.node(node).frame_id())?;
        }
        Ok(())
    }

    fn event(&mut self, kind: char, frame: FrameId) -> io::Result<()> {
        let (comma, at) = (std::mem::replace(&mut self.comma, ",\n"), self.at);
        write!(self.out, "{comma}{{\"type\":\"{kind}\",\"frame\":{},\"at\":{at}}}", frame.index())
    }
}
