package crash

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the process when the test's process dies without cleaning up (a test that ran into
// its timeout does).
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
