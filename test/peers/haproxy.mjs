// haproxy in front of the service: terminates TLS, forwards ticket requests and streams.
import { configured } from './nginx.mjs';
import { haproxy } from './packages.mjs';
import { listens, start } from './program.mjs';

const config = ({ folder, port, servicePort, quietMs, drainMs }) => `
global
  hard-stop-after ${drainMs}ms
defaults
  mode http
  retries 0
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  timeout tunnel ${quietMs}ms
frontend public
  bind 127.0.0.1:${port} ssl crt ${folder}/both.pem
  default_backend service
backend service
  server service 127.0.0.1:${servicePort}
`;

/** Starts haproxy. `reload` starts another process with new settings, which replaces the first one (`-sf`). */
export const startHaproxy = async (t, certificate, settings) => {
  const { file, write } = configured(t, certificate, settings, config);
  let program;
  const run = async (...replaced) => {
    program = start(t, haproxy, ['-db', '-f', file, ...replaced]);
    await listens(settings.port, program);
  };
  await run();
  return {
    reload: async (changed) => {
      write(changed);
      await run('-sf', String(program.child.pid));
    },
  };
};

/** The answer of haproxy when the upstream is down. */
startHaproxy.down = { status: 503, ticket: 'credential-service-unavailable' };
