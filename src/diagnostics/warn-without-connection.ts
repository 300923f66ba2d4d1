import type { LoggableEvent } from '../protocol/event-record.js';
import { printable } from '../protocol/printable.js';
import { debugName } from './debug-log.js';
import type { FeedOrigin } from './feed-origin.js';

/** How many attempts fail before the warning. One or two failures are common while a service restarts. */
const failuresBeforeWarning = 3;

/** Emits one warning of the process when this many attempts have failed and no connection has opened. */
export const warnWithoutConnection = ({ where, baseUrl }: FeedOrigin): ((event: LoggableEvent) => void) => {
  let failures = 0;
  return (event) => {
    if (event.type === 'opened') failures = Infinity;
    if (event.type !== 'disconnected') return;
    failures += 1;
    if (failures !== failuresBeforeWarning) return;
    const { code, message } = event.failure;
    const text =
      `No connection to ${baseUrl} has opened after ${failures} attempts of ${where}. ${code}: ${message} ` +
      `The feed continues to try. NODE_DEBUG=${debugName} prints each event; the option \`warnings: false\` turns this warning off.`;
    process.emitWarning(printable(text), { type: 'TradeFeedWarning', code });
  };
};
