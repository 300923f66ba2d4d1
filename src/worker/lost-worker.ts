import type { TicketSettings } from '../options.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { workerMeanings } from '../protocol/failures/worker-meanings.js';
import { redactor } from '../protocol/secret.js';
import { applyClassify } from '../protocol/failures/apply-classify.js';
import type { Seen } from './receiver.js';

/** Makes the failure of a worker that is lost while it received. What it held is lost as well: the outage begins with what was last heard. */
export const lostWorker = (settings: TicketSettings, open: Seen | undefined, thrown: unknown): unknown => {
  const cause = plain(settings, thrown);
  const detail = cause.message;
  if (open === undefined)
    return applyClassify(settings, createFailure(workerMeanings.lost, { stage: 'ticket', detail, cause }));
  const { openedAt, framesReceived, heardAt: endedAt } = open;
  const uptimeMs = Math.max(0, Date.now() - openedAt);
  return applyClassify(
    settings,
    createFailure(workerMeanings.lost, { stage: 'stream', uptimeMs, framesReceived, endedAt, detail, cause }),
  );
};

/** Makes the failure of a worker that did not come up. */
export const notStarted = (settings: TicketSettings, thrown: unknown): unknown => {
  const cause = plain(settings, thrown);
  return applyClassify(
    settings,
    createFailure(workerMeanings.notStarted, { stage: 'ticket', detail: cause.message, cause }),
  );
};

const plain = ({ apiKey }: TicketSettings, thrown: unknown): Error => {
  const hide = redactor(apiKey);
  const { message, stack, code } = Object(thrown) as Partial<Record<keyof NodeJS.ErrnoException, unknown>>;
  const text = hide(String(message ?? thrown));
  return Object.assign(new Error(text), { stack: hide(String(stack)), ...(typeof code === 'string' && { code }) });
};
