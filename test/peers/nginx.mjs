// nginx in front of the service: terminates TLS, forwards ticket requests and streams as its manual describes for WebSockets.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginx } from './packages.mjs';
import { folderFor, listens, start } from './program.mjs';

const config = ({ folder, port, servicePort, quietMs, drainMs }) => `
daemon off;
pid ${folder}/nginx.pid;
worker_processes 1;
worker_shutdown_timeout ${drainMs}ms;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${folder}/both.pem;
    ssl_certificate_key ${folder}/both.pem;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    location / { proxy_pass http://127.0.0.1:${servicePort}; }
    location = /ws { proxy_pass http://127.0.0.1:${servicePort}; proxy_read_timeout ${quietMs}ms; }
  }
}
`;

/** Creates a folder with the certificate of a proxy. Returns it, the path of its configuration, and a function that writes that with changed settings. */
export const configured = (t, certificate, settings, textOf) => {
  const folder = folderFor(t);
  const file = join(folder, 'proxy.conf');
  writeFileSync(join(folder, 'both.pem'), `${certificate.cert}\n${certificate.key}`, { mode: 0o644 });
  const write = (changed) => writeFileSync(file, textOf({ ...settings, ...changed, folder }));
  write();
  return { folder, file, write };
};

/** Starts nginx. `reload` applies new settings with `nginx -s reload`. */
export const startNginx = async (t, certificate, settings) => {
  const { folder, file, write } = configured(t, certificate, settings, config);
  const args = ['-c', file, '-p', folder, '-e', 'stderr'];
  await listens(settings.port, start(t, nginx, args));
  return {
    reload: async (changed) => {
      write(changed);
      const { child, ended } = start(t, nginx, [...args, '-s', 'reload']);
      const stderr = await ended;
      if (child.exitCode !== 0) throw new Error(stderr);
    },
  };
};

/** The answer of nginx when the upstream is down. */
startNginx.down = { status: 502, ticket: 'ticket-request-failed' };
