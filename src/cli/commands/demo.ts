import { tap } from 'rxjs';
import { tradeFeedEvents$ } from '../../index.js';
import type { DemoCommand } from '../arguments/parsed-command.js';
import { type CliContext, isTerminal } from '../context.js';
import { endingOf, endings$, finish, outcomeOf } from '../follow/ending.js';
import { follow } from '../follow/follow.js';
import { withKeys } from '../view/keys.js';
import { panelView, plainView } from '../view/views.js';
import { summaryLines } from '../view/words.js';
import { demoService } from './demo-service.js';

/**
 * Shows a live feed of a local service, or of the service in the arguments or the environment.
 *
 * @returns the exit code
 * @throws the failure that stopped the feed, or a CliError
 */
export const demo = async (command: DemoCommand, context: CliContext): Promise<number> => {
  const { stdout } = context;
  const { feed, options } = command;
  const { replicas } = options;
  if (replicas !== undefined) {
    const { demoReplicas } = await import('./demo-replicas.js');
    return demoReplicas({ ...command, options: { ...options, replicas } }, context);
  }
  const bounds = { durationMs: options.duration };
  const service = await demoService(command, context);
  try {
    const events$ = tradeFeedEvents$(feed, service.options);
    const isDrawn = isTerminal(stdout, context);
    const view = isDrawn ? panelView(context, service) : plainView(stdout, service);
    const endings = endings$(isDrawn ? withKeys(context) : context);
    const outcome = await outcomeOf(
      events$.pipe(
        follow(feed, bounds, endings),
        tap((step) => view.show(step)),
      ),
    ).finally(() => view.close());
    stdout.write(`${summaryLines(outcome.tally).join('\n')}\n`);
    return finish({ ...outcome, ending: endingOf(stdout) ?? outcome.ending }, bounds);
  } finally {
    await service.close();
  }
};
