// nginx in front of two servers, with the settings that a stream of Server-Sent Events needs.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isListening } from './ports.mjs';

const paths = ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/opt/homebrew/bin/nginx'];

const config = ({ folder, port, ports }) => `
daemon off;
pid ${folder}/nginx.pid;
worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream servers {
${ports.map((each) => `    server 127.0.0.1:${each} max_fails=0;`).join('\n')}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://servers;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      # If a server is down, shuts down or has lost its feed, the other one answers.
      proxy_next_upstream error timeout http_502 http_503;
      # Frames are not delayed, and a quiet stream is not closed.
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`;

/**
 * Starts nginx.
 *
 * @param port - the port of nginx
 * @param ports - the ports of the servers; one of them may be down
 */
export const startNginx = async (port, ports) => {
  const nginx = paths.find((path) => existsSync(path));
  if (nginx === undefined) throw new Error('nginx is not installed. On Debian, run: apt-get install nginx');
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-nginx-'));
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, config({ folder, port, ports }));
  const program = spawn(nginx, ['-c', file, '-p', folder, '-e', 'stderr'], { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  program.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  const exited = new Promise((done) => program.once('exit', done).once('error', done));
  const end = async () => {
    program.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const failed = exited.then(() => Promise.reject(new Error(`nginx exited:\n${errors}`)));
  failed.catch(() => undefined);
  await Promise.race([isListening(port), failed]);
  return { end };
};
