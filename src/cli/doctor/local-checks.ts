import { firstValueFrom, EMPTY } from 'rxjs';
import { requestTicket, TradeFeedError, type TradeFeedOptions } from '../../index.js';
import { proxyFor } from '../../transport/proxy-for.js';
import { CliError } from '../cli-error.js';
import { connectionOptions } from '../connection.js';
import { ExitCode } from '../exit-code.js';
import { adviceFor, whatHappened } from '../view/failure-words.js';
import { type Check, type Checked, failed, type Facts, ok, warning } from './check.js';

/** The oldest Node that the package supports. */
const oldestNode = [20, 19] as const;

/** Checks the version of Node. */
export const nodeFinding = (version: string): Checked => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isSupported = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  if (isSupported) return ok(`Node ${version}`);
  return failed(ExitCode.local, `Node ${version} is too old.`, `Install Node ${oldestNode.join('.')} or later.`);
};

const settings = async ({ command, context }: Facts): Promise<Checked> => {
  try {
    const options = await connectionOptions(command, context);
    await validate(options);
    const url = new URL(options.baseUrl as string);
    return ok(`${url.href}, with an API key`, { options, url });
  } catch (error) {
    if (error instanceof CliError) return failed(error.exitCode, error.message);
    if (error instanceof TradeFeedError) return failed(ExitCode.usage, whatHappened(error), adviceFor(error));
    throw error;
  }
};

// The operator validates the options when it is created, before any input or output.
const validate = (options: TradeFeedOptions): Promise<unknown> =>
  firstValueFrom(EMPTY.pipe(requestTicket(options)), { defaultValue: undefined });

/** Reports which proxy is used for the address, and variables that have no effect. */
export const proxyFinding = (url: URL, env: Facts['context']['env']): Checked => {
  const proxy = proxyFor(url, env);
  if (proxy) return ok(`through ${proxy.host}, from HTTPS_PROXY`, { proxy });
  const isSet = (name: string): boolean => Boolean(env[name] ?? env[name.toLowerCase()]);
  if (isSet('HTTPS_PROXY')) {
    const cause = env['NODE_USE_ENV_PROXY'] === '0' ? 'NODE_USE_ENV_PROXY is 0' : 'NO_PROXY or loopback';
    return ok(`none for this address, although HTTPS_PROXY is set: ${cause}`);
  }
  const other = ['HTTP_PROXY', 'ALL_PROXY'].find(isSet);
  if (other === undefined || url.protocol === 'http:') return ok('none');
  return warning(
    `none: ${other} has no effect on an https: address`,
    'If this network needs a proxy, set HTTPS_PROXY to its address.',
  );
};

/** The checks that connect to nothing. */
export const localChecks: readonly Check[] = [
  { name: 'node', run: () => nodeFinding(process.versions.node) },
  { name: 'settings', run: settings },
  { name: 'proxy', run: ({ url, context }) => proxyFinding(url as URL, context.env) },
];
