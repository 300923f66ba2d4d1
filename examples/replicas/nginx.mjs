/**
 * Returns the configuration of nginx: one address for all replicas. A page that loses its replica connects to another one.
 *
 * @param {string} folder - for files of nginx
 * @param {number} port
 * @param {readonly number[]} replicas - the ports of the replicas
 */
export const nginxConfiguration = (folder, port, replicas) => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream replicas {
${replicas.map((each) => `    server 127.0.0.1:${each} max_fails=1 fail_timeout=1s;`).join('\n')}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off; # Server-Sent Events must arrive at once
      proxy_read_timeout 1h;
      proxy_next_upstream error timeout http_503; # a replica that shuts down refuses new pages
    }
  }
}
`;
