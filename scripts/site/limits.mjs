// The lists of docs/limits.md: the numeric defaults that the library has when it runs, with the first sentence of each declaration's comment.
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { withPart } from './failure-text.mjs';

/** What reads the defaults, by file of src. */
export const limitSources = {
  'feed/options.ts': 'resolveOptions',
  'worker/settings.ts': 'cloneableSettings',
  'feed/backoff.ts': 'defaultBackoff',
  'operators/bounded/bounded-queue.ts': 'boundDefaults',
  'operators/window/contents.ts': 'windowDefaults',
  'relay/relay-options.ts': 'resolveRelayOptions',
  'cluster/cluster-options.ts': 'resolveElectionOptions',
  'log/options.ts': 'folderDefaults',
  'log/line-store.ts': 'keptBy',
  'log/consume.ts': 'consumeDefaults',
  'testing/service-options.ts': 'serviceDefaults',
};

/** The parts of the page: the defaults, then the file and the interfaces that declare them. */
const partsOf = (source) => ({
  feed: [
    { ...source.resolveOptions(), ...source.cloneableSettings({ backoff: {} }) },
    ...['feed/options.ts', 'TradeFeedOptions'],
  ],
  reconnecting: [source.defaultBackoff, 'feed/backoff.ts', 'BackoffPolicy'],
  bounds: [source.boundDefaults, 'operators/bounded/bounded-queue.ts', 'BoundOptions'],
  windows: [
    source.windowDefaults,
    ...['operators/window/window.ts', 'TimeWindowOptions', 'FramesOptions', 'KeyOptions'],
  ],
  relay: [source.resolveRelayOptions(), 'relay/relay-options.ts', 'RelayOptions'],
  cluster: [
    source.resolveElectionOptions({ engine: { compareAndSet: () => undefined }, account: 'a' }),
    ...['cluster/cluster-options.ts', 'ClusterElectionOptions'],
  ],
  log: [source.folderDefaults, 'log/options.ts', 'FeedLogOptions'],
  'cluster-line': [source.keptBy({ kind: 'line' }), 'cluster/cluster-options.ts', 'ClusterLineOptions'],
  'server-log': [
    { ...source.keptBy({ kind: 'log' }), maxWaitingBytes: source.folderDefaults.maxWaitingBytes },
    ...['log/engine-log.ts', 'EngineLogOptions'],
  ],
  consumers: [source.consumeDefaults, 'log/consume.ts', 'ConsumeOptions'],
  service: [source.serviceDefaults.limits, 'testing/service-options.ts', 'ServiceLimits'],
});

/** Returns the fields of interfaces with their comments: `{ name, text, byDefault }`. */
const declaredIn = (file, interfaces) =>
  ts
    .createSourceFile(file, readFileSync(`src/${file}`, 'utf8'), ts.ScriptTarget.Latest, true)
    .statements.filter((each) => ts.isInterfaceDeclaration(each) && interfaces.includes(each.name.text))
    .flatMap(({ members }) => [...members])
    .map((member) => ({
      name: member.name.text,
      text: ts.getTextOfJSDocComment(member.jsDoc[0].comment),
      byDefault: ts.getTextOfJSDocComment(ts.getJSDocTags(member)[0]?.comment),
    }));

/** Returns an item: the name, the default with what its comment adds to the number, and the comment's first sentence. */
const itemOf = ({ name, text, byDefault }, value) => {
  const [sentence] = /^.+?\.(?=\s|$)/s.exec(text);
  // Names tell the unit.
  const said = sentence.replaceAll(/\s+/g, ' ').replace(/,? in (ms|bytes)\b/, '');
  const shown = value === Infinity ? '`Infinity`' : String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
  const more = byDefault.replace(/^[^,(]*\b(?=,| \()|^[^,(]*$/, '');
  return `- \`${name}\`, ${shown}${more}: ${said[0].toLowerCase()}${said.slice(1)}`;
};

/** Returns the page with its lists. */
export const limitsPage = (page, source) =>
  Object.entries(partsOf(source)).reduce((text, [part, [defaults, file, ...interfaces]]) => {
    const isLimit = (name) => typeof defaults[name] === 'number';
    const limits = declaredIn(file, interfaces).filter(({ name }) => isLimit(name));
    const lost = Object.keys(defaults).filter((name) => isLimit(name) && !limits.some((each) => each.name === name));
    if (lost.length > 0) throw new Error(`${interfaces} of src/${file} doesn't declare ${lost}.`);
    return withPart(text, part, limits.map((each) => itemOf(each, defaults[each.name])).join('\n'));
  }, page);
