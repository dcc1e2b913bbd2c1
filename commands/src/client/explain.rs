//! `gwctl explain`: which route answers a request, and why the others do not.

mod asked;

use super::apply::Random;
use super::args::{ConnectArgs, LookArgs};
use super::connect::{client, failure, node, registry, run};
use super::history::document;
use super::look::Look;
use super::table::table;
use crate::cli::Output;
use crate::failure::{CHECK_FAILED, Failure};
use asked::Asked;
use clap::Args;
use gwctl_admin_client::ListQuery;
use gwctl_declarative::{LoadOptions, Mode, load_located};
use gwctl_entities::view::{Route, Service, from_record};
use gwctl_entities::{Record, Value};
use gwctl_router::{Field, Flavor, Gate, Match, Outcome, RouteEntry, Router, Verdict};
use gwctl_tui::format::plain;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Routes that do not fit and are shown without --all.
const SHOWN: usize = 10;
/// Values of a field that are shown.
const VALUES: usize = 3;

#[derive(Debug, Args)]
#[command(
    override_usage = "gwctl explain [OPTIONS] [METHOD] <URL>",
    after_help = "\
Examples:
  gwctl explain GET /orders/1 -f kong.yaml   by the routes of a file
  gwctl explain https://shop.example/cart    by those of a control plane
  gwctl explain POST /orders -H 'X-Tier: gold' --host shop.example
  gwctl explain /orders -f conf/ --expect orders-list -o json

The request is not sent anywhere. Plugins that change a request before the
route is chosen are not looked at.

Exit codes: 0 explained (also when no route answers), 1 error, 4 token missing
or not allowed, 6 another route than --expect says answers, 64 wrong usage,
69 control plane unreachable."
)]
pub struct ExplainArgs {
    /// Method (GET when not given), then a URL or a path from /.
    #[arg(value_name = "[METHOD] URL", num_args = 1..=2, required = true)]
    pub request: Vec<String>,
    /// Host of the request, with its port if it has one; that of the URL when not given.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Header of the request, may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Server name of the TLS handshake; the host of an https URL when not given.
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
    /// Address of the client, for routes by expression.
    #[arg(long, value_name = "IP[:PORT]")]
    pub source: Option<String>,
    /// Declarative file, folder of such files, or - for stdin; may be repeated. The Admin API is asked when not given.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How the routes of files are read (router_flavor); a control plane tells its own.
    #[arg(long, value_name = "FLAVOR", value_parser = ["traditional_compatible", "traditional", "expressions"], requires = "files")]
    pub flavor: Option<String>,
    /// Name or id of the route that must answer; exit code 6 when it does not.
    #[arg(long, value_name = "ROUTE")]
    pub expect: Option<String>,
    /// Show every route, however many there are.
    #[arg(long)]
    pub all: bool,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    #[command(flatten)]
    pub look: LookArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

pub fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let asked = Asked::read(args)?;
    let known = if args.files.is_empty() { live(args)? } else { written(args)? };
    let told = known.explain(&asked);
    let text = match args.output {
        Output::Table => told.text(args.all, Look::of(&args.look)),
        output => document(output, &told.json()),
    };
    // A reader that closed the pipe early has what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
    match &args.expect {
        Some(expected) if !told.is_answered_by(expected) => {
            Err(Failure::new(format!("{}, expected route {expected}", told.headline())).code(CHECK_FAILED))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The routes of files.
fn written(args: &ExplainArgs) -> Result<Known, Failure> {
    let flavor = args.flavor.as_deref().unwrap_or(Flavor::default().as_str());
    let bundle = super::document::read(&args.files)?;
    let value = Value::Object(bundle.document.clone());
    let loaded = load_located(&registry(flavor), value, &LoadOptions::of(Mode::Partial), &mut Random)
        .map_err(|refusal| super::document::mistaken(&bundle, &refusal.mistakes))?;
    Known::new(flavor, loaded.records("services"), loaded.records("routes"))
}

/// The routes of a control plane or another node.
fn live(args: &ExplainArgs) -> Result<Known, Failure> {
    let client = client(&args.connect)?;
    run(async {
        let node = node(&client).await?;
        let all = ListQuery::default();
        let services = client.list("/services", &all).await.map_err(|error| failure(&error))?;
        let routes = client.list("/routes", &all).await.map_err(|error| failure(&error))?;
        Known::new(&node.flavor, &services, &routes)
    })
}

/// The routes as a data plane would serve them.
struct Known {
    router: Router,
    /// Routes that are not served, and why.
    left_out: Vec<(String, String)>,
}

impl Known {
    fn new(flavor: &str, services: &[Record], routes: &[Record]) -> Result<Known, Failure> {
        let flavor: Flavor = flavor.parse().map_err(|error| Failure::because("cannot read the routes", &error))?;
        let unreadable = |error: serde_json::Error| Failure::because("cannot read the routes", &error);
        let mut by_id: BTreeMap<Arc<str>, Arc<Service>> = BTreeMap::new();
        for record in services {
            let service: Service = from_record(record).map_err(unreadable)?;
            by_id.insert(service.id.clone(), Arc::new(service));
        }
        let (mut entries, mut left_out) = (Vec::with_capacity(routes.len()), Vec::new());
        for record in routes {
            let route: Arc<Route> = Arc::new(from_record(record).map_err(unreadable)?);
            let service = route.service.as_ref().and_then(|id| by_id.get(id)).cloned();
            if let Some(why) = not_served(&route, service.as_deref()) {
                left_out.push((name(&route).to_owned(), why));
            }
            entries.push(RouteEntry { route, service });
        }
        let (router, problems) =
            Router::build(flavor, entries).map_err(|error| Failure::because("cannot read the routes", &error))?;
        left_out.extend(problems.into_iter().map(|problem| {
            let name = problem.name.as_ref().unwrap_or(&problem.id).to_string();
            (name, format!("{}: {}", problem.field, problem.reason))
        }));
        Ok(Known { router, left_out })
    }

    fn explain(&self, asked: &Asked) -> Told<'_> {
        asked.with(|request| {
            let explanation = self.router.explain(request);
            let found = self.router.find(request);
            let answer = found.map(|found| Answer::of(&found, asked));
            Told { asked: asked.clone(), verdicts: explanation.verdicts, answer, left_out: &self.left_out }
        })
    }
}

/// Why the router leaves a route out without a word.
fn not_served(route: &Route, service: Option<&Service>) -> Option<String> {
    let over_http = |protocol: &String| matches!(protocol.as_str(), "http" | "https" | "grpc" | "grpcs");
    if let Some(service) = service.filter(|service| !service.enabled) {
        return Some(format!("its service {} is disabled", service.name.as_ref().unwrap_or(&service.id)));
    }
    (!route.protocols.iter().any(over_http)).then(|| format!("it is for {} only", route.protocols.join(", ")))
}

fn name(route: &Route) -> &str {
    route.name.as_ref().unwrap_or(&route.id)
}

/// What becomes of the request at its route.
struct Answer {
    service: Option<String>,
    upstream: Option<String>,
    /// The answer of the route's protocols, where they do not let the request pass.
    gate: Option<String>,
}

impl Answer {
    fn of(found: &Match<'_, '_>, asked: &Asked) -> Answer {
        let url = |service: &Arc<Service>| {
            let (protocol, host, port) = (&service.protocol, &service.host, service.port);
            format!("{protocol}://{host}:{port}{}", found.upstream_target(&asked.target))
        };
        let gate = match found.gate(asked.https, true, asked.header("content-type").map(str::as_bytes)) {
            Gate::Pass => None,
            Gate::UseHttps { status } => Some(format!("{status}: the route is for https only")),
            Gate::UseHttp2 | Gate::UseGrpcs => Some("the route is for gRPC over TLS only".to_owned()),
            Gate::NotGrpc => Some("415: the route is for gRPC only".to_owned()),
        };
        Answer {
            service: found.service.map(|service| service.name.as_ref().unwrap_or(&service.id).to_string()),
            upstream: found.service.map(url),
            gate,
        }
    }
}

/// The explanation of one request.
struct Told<'k> {
    asked: Asked,
    verdicts: Vec<Verdict<'k>>,
    answer: Option<Answer>,
    left_out: &'k [(String, String)],
}

impl Told<'_> {
    fn winner(&self) -> Option<&Verdict<'_>> {
        self.verdicts.first().filter(|verdict| verdict.outcome == Outcome::Won)
    }

    fn is_answered_by(&self, expected: &str) -> bool {
        let is = |verdict: &Verdict<'_>| name(verdict.route) == expected || &*verdict.route.id == expected;
        self.winner().is_some_and(is)
    }

    fn headline(&self) -> String {
        match self.winner() {
            Some(verdict) => format!("{} is answered by route {}", self.asked, name(verdict.route)),
            None => format!("{} is answered by no route: 404", self.asked),
        }
    }

    fn text(&self, all: bool, look: Look) -> String {
        let mut text = look.tint(&plain(&self.headline()), if self.winner().is_some() { 32 } else { 33 });
        if let Some(answer) = &self.answer {
            let to = match (&answer.service, &answer.upstream) {
                (Some(service), Some(url)) => format!("service {service}, sent on to {url}"),
                _ => "without a service: its plugins answer".to_owned(),
            };
            text += &format!("\n  {}", plain(&to));
            text += &answer.gate.as_ref().map(|gate| format!("\n  but not as it is: {gate}")).unwrap_or_default();
        }
        text += "\n\n";
        let fitting = self.verdicts.iter().filter(|verdict| !matches!(verdict.outcome, Outcome::Failed(_))).count();
        let shown = if all { self.verdicts.len() } else { self.verdicts.len().min(fitting + SHOWN) };
        let rows: Vec<Vec<String>> = self.verdicts[..shown]
            .iter()
            .map(|verdict| vec![name(verdict.route).to_owned(), word(&verdict.outcome).to_owned(), self.why(verdict)])
            .collect();
        if !rows.is_empty() {
            text += &table(&["ROUTE", "OUTCOME", "WHY"], &rows);
        }
        if self.verdicts.len() > shown {
            text += &format!("... and {} more that do not fit; --all shows them\n", self.verdicts.len() - shown);
        }
        for (route, why) in self.left_out {
            text += &plain(&format!("! route {route} is not served: {why}"));
            text.push('\n');
        }
        text
    }

    fn why(&self, verdict: &Verdict<'_>) -> String {
        let path = verdict.path.map(|path| format!("path {path}"));
        match &verdict.outcome {
            Outcome::Won => path.unwrap_or_else(|| "it fits".to_owned()),
            Outcome::Outranked => {
                format!("{}, but comes later in the order", path.unwrap_or_else(|| "it fits".to_owned()))
            }
            Outcome::Failed(field) => {
                let wants = wants(verdict.route, field);
                let few = wants.iter().take(VALUES).cloned().collect::<Vec<_>>().join(", ");
                let more = if wants.len() > VALUES { ", ..." } else { "" };
                match self.asked.value(field) {
                    Some(has) => format!("{field}: {few}{more}; the request has {has}"),
                    None => format!("{field}: {few}{more}; the request has none"),
                }
            }
        }
    }

    fn json(&self) -> Value {
        let verdicts = self.verdicts.iter().map(|verdict| {
            let mut told = json!({
                "route": verdict.route.name,
                "id": verdict.route.id,
                "outcome": word(&verdict.outcome),
                "priority": verdict.priority,
                "path": verdict.path,
            });
            if let Outcome::Failed(field) = &verdict.outcome {
                told["field"] = field.to_string().into();
                told["wants"] = wants(verdict.route, field).into();
                told["has"] = self.asked.value(field).into();
            }
            told
        });
        let answer = self.winner().zip(self.answer.as_ref()).map(|(verdict, answer)| {
            json!({
                "route": verdict.route.name,
                "id": verdict.route.id,
                "service": answer.service,
                "upstream": answer.upstream,
                "refused": answer.gate,
            })
        });
        let left_out = self.left_out.iter().map(|(route, why)| json!({"route": route, "why": why}));
        json!({
            "kind": "explanation",
            "version": 1,
            "request": self.asked.json(),
            "answer": answer,
            "routes": verdicts.collect::<Vec<_>>(),
            "not_served": left_out.collect::<Vec<_>>(),
        })
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Won => "answers",
        Outcome::Outranked => "outranked",
        Outcome::Failed(_) => "no fit",
    }
}

/// What a route asks for in a field.
fn wants(route: &Route, field: &Field) -> Vec<String> {
    match field {
        Field::Sni => route.snis.clone(),
        Field::Method => route.methods.clone(),
        Field::Host => route.hosts.clone(),
        Field::Path => route.paths.clone(),
        Field::Expression => route.expression.clone().map_or_else(Vec::new, |text| vec![text]),
        Field::Header(name) => {
            let found = route.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, values)| values.clone()).unwrap_or_default()
        }
    }
}
