// @ts-check
// Measures a feed with OpenTelemetry, and offers the metrics to Prometheus. Runs until Ctrl-C.
//
//   node examples/observability/measured-feed.mjs
//
// On the local service the access expires every 20 s, so there are outages to see. METRICS_PORT is the port of the metrics, 9464 without it.
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fromEvent, ignoreElements, lastValueFrom, takeUntil } from 'rxjs';
import { logEvents, tradeFeedEvents$ } from 'rx-trade-feed';
import { feedMetrics } from 'rx-trade-feed/otel';
import { withService } from '../support/with-service.mjs';

const exporter = new PrometheusExporter({ preventServerStart: true });
const provider = new MeterProvider({ readers: [exporter] });
const server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
server.listen(Number(process.env['METRICS_PORT'] ?? 9464), '127.0.0.1');
await once(server, 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
console.log(`metrics on http://127.0.0.1:${port}/metrics`);

const interrupted$ = fromEvent(process, 'SIGINT');
await withService(async (options, local) => {
  const outages = setInterval(() => local?.account.expireAccess(), 20_000);
  const feed$ = tradeFeedEvents$('market', options).pipe(
    logEvents(console, { level: 'info' }),
    feedMetrics({ meter: provider.getMeter('measured-feed') }),
  );
  await lastValueFrom(feed$.pipe(takeUntil(interrupted$), ignoreElements()), { defaultValue: undefined });
  clearInterval(outages);
});

server.close();
server.closeAllConnections();
await provider.shutdown();
