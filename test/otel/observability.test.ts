import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { parse } from 'yaml';
import { type DropReport, tradeFeedEvents$ } from '../../src/index.js';
import { feedMetrics } from '../../src/otel/index.js';
import { tablesUnder } from '../docs/tables.js';
import { optionsFor, until } from '../support/feed.js';
import { accept, close, startWire, text } from '../support/wire.js';
import { labelsByMetric, namesIn } from './promql.js';

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

/** Grafana replaces its variables before Prometheus reads a query. */
const asPrometheus = (query: string): string =>
  query.replaceAll('$__rate_interval', '1m').replaceAll(/\$(job|instance)\b/g, '.+');

const queries: readonly (readonly [where: string, query: string])[] = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, asPrometheus(expr)] as const)),
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
];

/** Labels that Prometheus adds to each series that it scrapes. */
const addedLabels = ['job', 'instance'];

let server: Server;
let provider: MeterProvider;
let scraped: ReadonlyMap<string, ReadonlySet<string>>;

// A feed over two connections, whose metrics the exporter of Prometheus offers over HTTP.
beforeAll(async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  provider = new MeterProvider({ readers: [exporter] });
  server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const drops$ = new Subject<DropReport>();
  const cluster = { status: { replica: 'a', owner: 'a' } };
  await using wire = await startWire({ handshake: [accept(text('one'), close(1001)), accept(text('two'))] });
  const measure = feedMetrics({ meter: provider.getMeter('test'), drops$, cluster });
  const feed$ = tradeFeedEvents$('market', optionsFor(wire)).pipe(measure);
  await until(feed$, (event) => event.type === 'frame' && event.text() === 'two');
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  scraped = labelsByMetric(await response.text());
});
afterAll(async () => {
  await provider.shutdown();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('the queries of the dashboard and of the alerts', () => {
  it.each(queries)('%s reads metrics and labels that were scraped (%#)', (_where, query) => {
    const { metrics, labels } = namesIn(query);
    expect(metrics).not.toEqual([]);
    const unknown = metrics.filter((name) => !scraped.has(name));
    expect(unknown).toEqual([]);
    const known = new Set([...addedLabels, ...metrics.flatMap((name) => [...(scraped.get(name) ?? [])])]);
    expect(labels.filter((label) => !known.has(label))).toEqual([]);
  });

  it('read each metric of the guide', () => {
    const used = new Set(queries.flatMap(([, query]) => namesIn(query).metrics));
    const [rows = []] = tablesUnder('docs/operating.md', 'The instruments');
    const names = rows.map(({ 'in Prometheus': name = '' }) => name);
    expect(names).toHaveLength(11);
    expect(
      names.filter((name) => ![...used].some((each) => each.replace(/_(bucket|sum|count)$/, '') === name)),
    ).toEqual([]);
  });

  it('fail this test if they name an unknown metric, an unknown label, or are not valid', () => {
    expect(namesIn('sum by (zone) (rate(trade_feed_oi_total{feed="a"}[5m]))')).toEqual({
      metrics: ['trade_feed_oi_total'],
      labels: ['zone', 'feed'],
    });
    expect(() => namesIn('sum(rate(trade_feed_io_total[5m])')).toThrow('Not a query');
  });
});

it('the metrics that were scraped are those of the guide', () => {
  const [rows = []] = tablesUnder('docs/operating.md', 'The instruments');
  const ofFeeds = [...scraped.keys()].filter((name) => /^(trade_feed|messaging)_/.test(name));
  const families = new Set(ofFeeds.map((name) => name.replace(/_(bucket|sum|count)$/, '')));
  expect([...families].sort()).toEqual(rows.map((row) => row['in Prometheus']).sort());
});

it('the dashboard has variables that were scraped, and a separate id for each panel', () => {
  const variables = dashboard.templating.list.filter(({ type }) => type === 'query');
  expect(variables).toHaveLength(2);
  for (const { query } of variables) {
    const [, metric = '', label = ''] = /label_values\((\w+), (\w+)\)/.exec(JSON.stringify(query)) ?? [];
    expect(scraped.has(metric)).toBe(true);
    expect(addedLabels).toContain(label);
  }
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});

it('each alert has a summary and a description', () => {
  for (const { annotations } of alerts)
    expect(annotations).toMatchObject({ summary: expect.any(String), description: expect.any(String) });
  expect(alerts.length).toBeGreaterThan(0);
});
