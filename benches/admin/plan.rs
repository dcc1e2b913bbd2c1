//! The plan from one file to another, and `gwctl apply` and `gwctl diff` as people run them.

use crate::GWCTL;
use crate::node::{ControlPlane, timed, worked};
use crate::report::{Report, seconds};
use crate::shape::{EACH, document};
use gwctl_declarative::{DiffOptions, Existing, Limits, LoadOptions, Mode, TextForm, diff, load, parse};
use gwctl_entities::{NodeKind, Registry, RegistryOptions};
use gwctl_store::SystemFill;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) fn measure(services: usize, report: &mut Report) {
    let texts = [document(services, false).to_string(), document(services, true).to_string()];
    between_files(&texts, services * EACH, report);
    as_people_do(&texts, services * EACH, report);
}

/// Both texts read and loaded, the second against the first, and compared, on as many threads as there are processors.
fn between_files(texts: &[String; 2], entities: usize, report: &mut Report) {
    report.part(&format!("from one file of {entities} entities to another"));
    let router_flavor = "traditional_compatible".to_owned();
    let registry = Registry::bundled(&RegistryOptions { kind: NodeKind::ControlPlane, router_flavor, plugins: None });
    let mut total = Duration::ZERO;
    let mut step = |name: &str, took: Duration| {
        report.tell(name, seconds(took), "s");
        total += took;
    };
    let before = worked("self");
    let read = |text: &str| parse(text, TextForm::Json, &Limits::default()).unwrap();
    let (documents, took) = timed(|| {
        std::thread::scope(|scope| {
            let second = scope.spawn(|| read(&texts[1]));
            (read(&texts[0]), second.join().unwrap())
        })
    });
    step("read both texts", took);
    let (first, second) = documents;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let options = LoadOptions { threads, ..LoadOptions::of(Mode::Partial) };
    let (current, took) = timed(|| load(&registry, first, &options, &mut SystemFill).unwrap());
    step("load the first", took);
    let (existing, took) = timed(|| Existing::new(&registry, &current.tables));
    step("index the first", took);
    let against = LoadOptions { existing: Some(&existing), ..options };
    let (target, took) = timed(|| load(&registry, second, &against, &mut SystemFill).unwrap());
    step("load the second", took);
    let pruned = DiffOptions { prune: true, threads, ..DiffOptions::default() };
    let (plan, took) = timed(|| diff(&registry, &current.tables, &existing, &target, &pruned));
    step("compare", took);
    report.tell("processor time of all steps", seconds(worked("self") - before), "s");
    report.judge(&format!("the plan of {} operations", plan.operations.len()), seconds(total), 2.0, "s");
}

fn as_people_do(texts: &[String; 2], entities: usize, report: &mut Report) {
    report.part(&format!("gwctl with files of {entities} entities"));
    let cp = ControlPlane::start(GWCTL);
    let files = ["first.json", "second.json"].map(|name| cp.path(name));
    for (file, text) in files.iter().zip(texts) {
        std::fs::write(file, text).unwrap();
    }
    let address = format!("http://127.0.0.1:{}", cp.node.admin());
    let tell = |what: &str, words: &[&str], file: &Path, code: i32| {
        let mut command = Command::new(GWCTL);
        command.args(words).args(["--addr", &address, "--timeout", "2m", "-f"]).arg(file);
        let (status, took) = timed(|| command.stdout(Stdio::null()).stderr(Stdio::inherit()).status().unwrap());
        assert_eq!(status.code(), Some(code), "{words:?}");
        report.tell(what, seconds(took), "s");
    };
    tell("gwctl apply on an empty store", &["apply", "--yes"], &files[0], 0);
    tell("gwctl diff without a difference", &["diff", "--prune"], &files[0], 0);
    tell("gwctl diff with the other file", &["diff", "--prune"], &files[1], 2);
    tell("gwctl apply of the other file", &["apply", "--prune", "--yes"], &files[1], 0);
}
