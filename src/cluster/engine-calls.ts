import type { AskResult, CallResult, Effect } from './election/election.js';
import { readKey, writeKey } from './election/cluster-key.js';
import type { ClusterEngine } from './engine/cluster-engine.js';
import { readReport, writeControl } from './messages/control.js';
import type { Subjects } from './subjects.js';

/** How long a question to the owner may take, in ms. The election has a shorter limit. */
const requestMs = 1_000;

type EffectOf<Type extends Effect['type']> = Extract<Effect, { readonly type: Type }>;

/**
 * Reads or writes the key.
 *
 * @throws TradeFeedError with code `invalid-options` for a key that this version cannot read
 */
export const access = async (
  engine: ClusterEngine,
  { key: name }: Subjects,
  effect: EffectOf<'read' | 'write'>,
): Promise<CallResult> => {
  if (effect.type === 'read') {
    const stored = await engine.read(name);
    return { type: 'entry', key: stored && readKey(stored.value), revision: stored?.revision };
  }
  const revision = await engine.compareAndSet(name, writeKey(effect.key), effect.expected);
  return revision === undefined ? { type: 'conflict' } : { type: 'written', revision };
};

/** Asks the owner whether it is there. */
export const ask = async (
  engine: ClusterEngine,
  { owner }: Subjects,
  { question }: EffectOf<'ask'>,
): Promise<AskResult> => {
  try {
    const reply = await engine.request(owner, writeControl(question), requestMs);
    if (reply.type === 'no-responders') return reply;
    const report = readReport(reply.data);
    return report ? { type: 'answer', report } : { type: 'no-answer' };
  } catch {
    return { type: 'no-answer' };
  }
};
