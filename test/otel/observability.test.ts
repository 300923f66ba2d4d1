import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { concat, NEVER, of, Subject } from 'rxjs';
import { parse } from 'yaml';
import { type DropReport, tradeFeedEvents$ } from '../../src/index.js';
import { feedMetrics } from '../../src/otel/index.js';
import { tablesUnder } from '../docs/tables.js';
import { requested } from '../operators/stream.js';
import { optionsFor, until } from '../support/feed.js';
import { listen } from '../support/listen.js';
import { accept, close, startWire, text } from '../support/wire.js';

const folder = join(import.meta.dirname, '../../examples/observability');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly type: string; readonly query: unknown }[] };
}
interface Alerts {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string; readonly annotations: object }[];
  }[];
}

const dashboard = JSON.parse(read('dashboard.json')) as Dashboard;
const alerts = (parse(read('alerts.yml')) as Alerts).groups.flatMap(({ rules }) => rules);

/** Returns the metrics and labels that a query names. Throws if it isn't valid in Prometheus' grammar. */
const namesIn = (query: string) => {
  const metrics = new Set<string>();
  const labels = new Set<string>();
  parser.parse(query).iterate({
    enter: (node) => {
      const { type, name, from, to } = node;
      if (type.isError) throw new Error(`Not a query, at character ${from}: ${query}`);
      if (name === 'LabelName') labels.add(query.slice(from, to));
      if (name === 'Identifier' && node.matchContext(['VectorSelector'])) metrics.add(query.slice(from, to));
    },
  });
  return { metrics: [...metrics], labels: [...labels] };
};

/** Returns the labels of each metric in a Prometheus scrape. */
const labelsByMetric = (text: string): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>();
  for (const [, metric = '', labels = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(metric) ?? new Set();
    found.set(metric, known);
    for (const [, label = ''] of labels.matchAll(/(?:^|,)([a-z_]+)="/g)) known.add(label);
  }
  return found;
};

/** Replaces Grafana's variables, as Grafana does before Prometheus reads a query. */
const asPrometheus = (query: string): string =>
  query.replaceAll('$__rate_interval', '1m').replaceAll(/\$(job|instance)\b/g, '.+');

const queries: readonly (readonly [where: string, query: string])[] = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, asPrometheus(expr)] as const)),
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
];

/** Labels that Prometheus adds to each series that it scrapes. */
const addedLabels = ['job', 'instance'];

let server: Awaited<ReturnType<typeof listen>>;
let provider: MeterProvider;
let scraped: ReadonlyMap<string, ReadonlySet<string>>;
/** What was scraped before the first connection. */
let atStart: string;

// Runs a feed over two connections, with metrics that the Prometheus exporter serves over HTTP.
beforeAll(async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  provider = new MeterProvider({ readers: [exporter] });
  server = await listen(createServer((request, response) => exporter.getMetricsRequestHandler(request, response)));
  const drops$ = new Subject<DropReport>();
  const cluster = { status: { replica: 'a', owner: 'a' } };
  const relay = { status: () => ({}) };
  await using wire = await startWire({
    handshake: [accept(text('one'), close(1001)), accept(text('two')), accept(close(4001))],
  });
  const measure = feedMetrics({ meter: provider.getMeter('test'), drops$, cluster, relay });
  const scrape = async () => (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
  const requesting = concat(of(requested(Date.now())), NEVER)
    .pipe(measure)
    .subscribe();
  atStart = await scrape();
  requesting.unsubscribe();
  const feed$ = tradeFeedEvents$('market', optionsFor(wire)).pipe(measure);
  await until(feed$, (event) => event.type === 'frame' && event.text() === 'two');
  // A feed that has stopped reports its outage.
  await until(feed$, () => false).catch(() => undefined);
  scraped = labelsByMetric(await scrape());
});
afterAll(async () => {
  await provider.shutdown();
  await server[Symbol.asyncDispose]();
});

const [rows = []] = tablesUnder('docs/operating.md', 'The instruments');
const inGuide = rows.map(({ 'in Prometheus': name = '' }) => name).sort();
const familyOf = (name: string): string => name.replace(/_(bucket|sum|count)$/, '');

it.each(queries)('the query %s reads metrics and labels that were scraped (%#)', (_where, query) => {
  const { metrics, labels } = namesIn(query);
  expect(metrics).not.toEqual([]);
  expect(metrics.filter((name) => !scraped.has(name))).toEqual([]);
  const known = new Set([...addedLabels, ...metrics.flatMap((name) => [...(scraped.get(name) ?? [])])]);
  expect(labels.filter((label) => !known.has(label))).toEqual([]);
});

it('the guide lists exactly the metrics that were scraped, and a query uses each', () => {
  const ofFeeds = [...scraped.keys()].filter((name) => /^(trade_feed|messaging)_/.test(name));
  expect([...new Set(ofFeeds.map(familyOf))].sort()).toEqual(inGuide);
  const used = new Set(queries.flatMap(([, query]) => namesIn(query).metrics.map(familyOf)));
  expect(inGuide.filter((name) => !used.has(name))).toEqual([]);
});

it('each counter in the guide is 0 before the first connection', () => {
  const counters = rows.flatMap(({ kind, 'in Prometheus': name = '' }) => (kind === 'counter' ? [name] : []));
  const samples = atStart.split('\n');
  const isZero = (name: string) => samples.some((line) => line.startsWith(`${name}{`) && line.endsWith('} 0'));
  expect(counters).not.toEqual([]);
  expect(counters.filter((name) => !isZero(name))).toEqual([]);
});
