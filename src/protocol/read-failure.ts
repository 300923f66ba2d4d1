import { type FailureCode, type FailureFacts, type Stage, TradeFeedError, type Verdict } from './failure.js';

/**
 * Reads a failure that was written as JSON: into a recording, or by a relay.
 *
 * @param shiftMs - by how much the clock of this machine is ahead of the writer's
 * @throws TypeError that says what is wrong with it
 */
export const readFailure = (value: unknown, shiftMs = 0): TradeFeedError => {
  const fields = Object(value) as Readonly<Record<string, unknown>>;
  const { code, message, stage, verdict, advice, endedAt, previous } = fields;
  const isRight =
    [code, message, advice].every((text) => typeof text === 'string') &&
    stages.includes(stage as Stage) &&
    verdicts.includes(verdict as Verdict);
  if (!isRight) throw new TypeError('a field of its failure is wrong');
  const facts = Object.entries(factTypes).filter(([name, type]) => typeof fields[name] === type);
  return new TradeFeedError({
    ...(Object.fromEntries(facts.map(([name]) => [name, fields[name]])) as Facts),
    // A newer version may know more codes than this one.
    code: code as FailureCode,
    message: message as string,
    stage: stage as Stage,
    verdict: verdict as Verdict,
    advice: advice as string,
    endedAt: typeof endedAt === 'number' ? endedAt + shiftMs : undefined,
    previous: previous === undefined ? undefined : readFailure(previous, shiftMs),
  });
};

const factTypes = {
  status: 'number',
  closeCode: 'number',
  reason: 'string',
  retryAfterMs: 'number',
  uptimeMs: 'number',
  framesReceived: 'number',
} as const;
type Facts = Pick<FailureFacts, keyof typeof factTypes>;

const stages: readonly Stage[] = ['ticket', 'handshake', 'stream'];

/** Lists the verdicts. */
export const verdicts: readonly Verdict[] = ['stop', 'renew', 'wait', 'backoff'];
