// Run a command in a pod: `node client_node_exec.mjs KUBECONFIG NAMESPACE POD COMMAND…`. The command gets the standard
// streams of this process, and this process exits with the command's code.
import { Exec, KubeConfig } from "@kubernetes/client-node";

const [kubeconfig, namespace, pod, ...command] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromFile(kubeconfig);

const status = await new Promise((resolve, reject) => {
  new Exec(config)
    .exec(namespace, pod, "main", command, process.stdout, process.stderr, process.stdin, false, resolve)
    .catch(reject);
});
const cause = status.details?.causes?.find((each) => each.reason === "ExitCode");
process.exitCode = status.status === "Success" ? 0 : Number(cause.message);
