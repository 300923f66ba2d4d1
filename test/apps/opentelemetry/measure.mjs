// Runs in a folder with an SDK of OpenTelemetry: `node measure.mjs SDK PORT`. Runs the program of the guide, which is in guide.mjs, over two connections
// of a local service, and prints the names of its metrics on this port, its spans and what the SDK logs.
import { pathToFileURL } from 'node:url';
import { diag, DiagLogLevel, trace } from '@opentelemetry/api';
import { startTradeFeedService } from 'rx-trade-feed/testing';

const [, , sdk, port] = process.argv;

const complaints = [];
const complain = (...words) => complaints.push(words.join(' '));
diag.setLogger({ error: complain, warn: complain, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);
// SDK 3 has another package for traces, with other names.
const isNew = sdk === '3';
const traces = await import(isNew ? '@opentelemetry/sdk-trace' : '@opentelemetry/sdk-trace-base');
const exporter = new traces.InMemorySpanExporter();
const processor = new traces.SimpleSpanProcessor(isNew ? { exporter } : exporter);
const provider = new traces[isNew ? 'TracerProvider' : 'BasicTracerProvider']({ spanProcessors: [processor] });
trace.setGlobalTracerProvider(provider);

const service = await startTradeFeedService();
process.env.TRADE_FEED_BASE_URL = service.baseUrl;
process.env.TRADE_FEED_API_KEY = service.createAccount({ plan: 'developer' }).createApiKey();
let frames = 0;
const { log } = console;
console.log = () => (frames += 1);
await import(pathToFileURL('guide.mjs').href);

const receive = async (count) => {
  while (frames < count) {
    service.push('market', 'a frame');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
await receive(1);
service.dropConnections();
await receive(frames + 1);

const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
const metrics = [...new Set([...text.matchAll(/^([a-z_]+)\{/gm)].map(([, name]) => name))];
const spans = exporter.getFinishedSpans().map(({ name, attributes }) => ({ name, attributes }));
log(JSON.stringify({ metrics, spans, complaints }));
process.exit();
