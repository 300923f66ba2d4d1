import { concatMap, filter, ignoreElements, lastValueFrom, merge, Subject, take, tap } from 'rxjs';
import type { Feed } from '../../index.js';
import {
  type ServiceEvent,
  startTradeFeedService,
  type TradeFeedService,
  type TradeFeedServiceOptions,
} from '../../testing/index.js';
import type { ServeCommand } from '../arguments/parsed-command.js';
import { localError, usageError } from '../cli-error.js';
import type { CliContext } from '../context.js';
import { ExitCode } from '../exit-code.js';
import { certificateFor } from '../serve/certificate.js';
import { serviceEventWords, welcome } from '../serve/messages.js';
import { payloadsFor } from '../serve/payloads.js';
import { logLine } from '../view/views.js';

/**
 * Runs a local service until it is interrupted.
 *
 * @returns the exit code
 * @throws CliError when the port, the certificate or the source cannot be used; RecordingError when the recording cannot be read
 */
export const serve = async ({ options }: ServeCommand, context: CliContext): Promise<number> => {
  const { stdout, stderr, interrupt$ } = context;
  const { plan = 'free', port = 0 } = options;
  const events = new Subject<ServiceEvent>();
  const clients = (feed: Feed) => events.pipe(filter((e) => e.type === 'handshake-accepted' && e.feed === feed));
  const { sources, feeds, feed } = await payloadsFor(options, context, clients);
  const certificate = await certificateFor(options);

  try {
    const service = await start({ port, tls: certificate.tls, sources });
    stdout.write(
      welcome({
        baseUrl: service.baseUrl,
        apiKey: service.createAccount({ plan }).createApiKey(),
        plan,
        feeds,
        feed,
        caFile: certificate.caFile,
      }),
    );
    const stop$ = interrupt$.pipe(
      take(1),
      concatMap(() => service.shutdown()),
      ignoreElements(),
    );
    const logged$ = service.events$.pipe(
      tap(events),
      tap((event) => stderr.write(logLine(event.at, serviceEventWords(event)))),
    );
    await lastValueFrom(merge(logged$, stop$), { defaultValue: undefined });
    return ExitCode.ok;
  } finally {
    await certificate.close();
  }
};

const start = async (options: TradeFeedServiceOptions & { readonly port: number }): Promise<TradeFeedService> => {
  try {
    return await startTradeFeedService(options);
  } catch (error) {
    if (error instanceof TypeError && options.tls)
      throw usageError('--cert and --key must contain a PEM certificate and its key.');
    throw localError(
      `Cannot listen on port ${options.port} of 127.0.0.1`,
      error,
      'Use another port with --port, or omit --port.',
    );
  }
};
