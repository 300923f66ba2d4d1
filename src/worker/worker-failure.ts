import type { TicketSettings } from '../options.js';
import { applyClassify } from '../protocol/failures/apply-classify.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { workerMeanings } from '../protocol/failures/worker-meanings.js';
import { redactor } from '../protocol/secret.js';
import type { OpenFeed } from './receiver.js';

/**
 * Creates the failure of a worker that ended without being stopped. The frames in its store are lost, so the outage begins at the time of
 * the newest frame that this thread received.
 */
export const workerLost = (settings: TicketSettings, open: OpenFeed | undefined, thrown: unknown): unknown => {
  const cause = withoutKey(settings, thrown);
  const detail = cause.message;
  if (open === undefined)
    return applyClassify(settings, createFailure(workerMeanings.lost, { stage: 'ticket', detail, cause }));
  const { openedAt, framesReceived, lastReadAt: endedAt } = open;
  const uptimeMs = Math.max(0, Date.now() - openedAt);
  return applyClassify(
    settings,
    createFailure(workerMeanings.lost, { stage: 'stream', uptimeMs, framesReceived, endedAt, detail, cause }),
  );
};

/** Creates the failure of a worker that could not be started. */
export const workerNotStarted = (settings: TicketSettings, thrown: unknown): unknown => {
  const cause = withoutKey(settings, thrown);
  return applyClassify(
    settings,
    createFailure(workerMeanings.notStarted, { stage: 'ticket', detail: cause.message, cause }),
  );
};

const withoutKey = ({ apiKey }: TicketSettings, thrown: unknown): Error => {
  const hide = redactor(apiKey);
  const { message, stack, code } = Object(thrown) as Partial<Record<keyof NodeJS.ErrnoException, unknown>>;
  const text = hide(String(message ?? thrown));
  return Object.assign(new Error(text), { stack: hide(String(stack)), ...(typeof code === 'string' && { code }) });
};
